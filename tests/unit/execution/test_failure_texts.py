"""What is stored of an error: always storable, always bounded, the same fingerprint for the same cause."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.attempts import Bench
from ultijobs._execution.failure import describe
from ultijobs._execution.outcome import without_texts
from ultijobs._text import unstorable
from ultijobs.errors import UltijobsError


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


class Coded(UltijobsError):
    code = "SHOP_CODED"


def thrown(error: BaseException, depth: int = 0) -> BaseException:
    try:
        _throw(error, depth)
    except BaseException as raised:  # noqa: BLE001 - what is tested
        return raised
    raise AssertionError


def _throw(error: BaseException, depth: int) -> None:
    if depth:
        _throw(error, depth - 1)
    raise error


odd = st.sampled_from(["\x00", "\ud800", "\udfff", "\x1b", "é", "\U0001f600"])
texts = st.text(st.characters() | odd, max_size=400)


@given(texts, st.integers(200, 2_000), st.sampled_from([ValueError, Coded, OSError, KeyError]))
def test_every_text_becomes_storable_and_bounded(text: str, limit: int, kind: Any):
    failure = describe(thrown(kind(text)), limit=limit, ending="(not retried)")
    for stored in (failure.code, failure.text, failure.traceback, failure.fingerprint):
        assert unstorable(stored) is None
        stored.encode()
    assert len(failure.text.encode()) <= limit
    assert failure.text.endswith("(not retried)")


async def test_a_text_of_megabytes_with_a_nul_is_stored_with_an_escape_and_a_mark():
    async def handler() -> None:
        raise ValueError("\x00\ud800" + "x" * 3_000_000)

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.error is not None
    assert settlement.error.startswith("ValueError: \\x00\\ud800xxx")
    assert "truncated, 3000016 bytes in all]" in settlement.error
    assert len(settlement.error.encode()) <= 10_000
    assert settlement.traceback is not None
    assert len(settlement.traceback.encode()) <= 20_000


def test_an_error_that_ends_the_process_when_it_is_shown_is_stored_by_its_class():
    class Ending(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    assert describe(Ending(), limit=1_000).text.endswith("Ending: its text cannot be had: SystemExit")


def test_an_error_whose_text_cannot_be_had_is_stored_by_its_class():
    failure = describe(thrown(Hostile()), limit=1_000)
    assert failure.text.endswith("Hostile: its text cannot be had: RuntimeError")
    assert "Hostile" in failure.traceback


def test_a_deep_recursion_and_a_ring_of_causes_are_bounded():
    def forever() -> None:
        forever()

    deep = None
    try:
        forever()
    except RecursionError as error:
        deep = error
    assert deep is not None
    assert len(describe(deep, limit=1_000).traceback.encode()) <= 20_000
    one, two = thrown(ValueError("one")), thrown(KeyError("two"))
    one.__cause__, two.__cause__ = two, one
    assert describe(one, limit=1_000).traceback.count("ValueError: one") == 1


def test_the_traceback_names_the_place_and_the_cause():
    cause = thrown(KeyError("inner"))
    error = thrown(ValueError("outer"), depth=3)
    error.__cause__ = cause
    text = describe(error, limit=1_000).traceback
    assert text.index("inner") < text.index("outer")
    assert "_throw" in text


async def test_the_librarys_own_frames_are_left_out():
    async def handler() -> None:
        raise ValueError("mine")

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.traceback is not None
    assert "_execution" not in settlement.traceback
    assert "test_failure_texts" in settlement.traceback


def fingerprint(text: str, *, depth: int = 0, kind: Any = ValueError) -> str:
    return describe(thrown(kind(text), depth), limit=1_000).fingerprint


def test_numbers_ids_and_quotations_do_not_change_a_fingerprint():
    assert fingerprint("order 17 of 'ann' took 1.5 s") == fingerprint("order 4711 of 'bob' took 30.25 s")
    assert fingerprint("row 0190b3c4-0000-7000-8000-00000000000a is gone") == fingerprint(
        "row 0190b3c4-1111-7000-8000-0000000000ff is gone"
    )
    assert fingerprint("<Conn object at 0x7f00aa> closed") == fingerprint("<Conn object at 0x7fffff> closed")


def test_another_message_class_or_place_is_another_fingerprint():
    def elsewhere() -> None:
        raise ValueError("order 1")

    other = None
    try:
        elsewhere()
    except ValueError as error:
        other = describe(error, limit=1_000).fingerprint
    prints = {fingerprint("order 1"), fingerprint("card 1"), fingerprint("order 1", kind=KeyError), other}
    assert len(prints) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", each or "") for each in prints)


@given(st.text(alphabet="'\"`0a-. ", max_size=300))
def test_a_fingerprint_of_hostile_quoting_is_found_in_no_time(text: str):
    assert fingerprint(text) == fingerprint(text)


async def test_a_foreign_errors_code_is_its_qualified_class_name():
    async def handler() -> None:
        raise Hostile

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.error_code is not None
    assert settlement.error_code.endswith("test_failure_texts.Hostile")
    assert describe(TimeoutError("x"), limit=500).code == "TimeoutError"


async def test_a_settlement_without_its_texts_keeps_the_outcome():
    async def handler() -> None:
        raise ValueError("x")

    settlement = await Bench(handler).run()
    assert settlement is not None
    bare = without_texts(settlement)
    assert (bare.outcome, bare.delay, bare.lease_no) == (settlement.outcome, settlement.delay, settlement.lease_no)
    assert "could not be stored" in str(bare.error)
    assert bare.traceback is None
