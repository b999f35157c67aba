"""What can be a step's result: exactly what comes back unchanged; anything else stops the job before it repeats."""

import enum
import math
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, PlainSerializer, TypeAdapter
from typing_extensions import TypedDict

from tests.support.attempts import Bench
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._steps.codec import codec_for, codec_of
from ultijobs._steps.step import Step
from ultijobs.errors import PayloadInvalid

LIMIT = 1_000_000


class Color(enum.IntEnum):
    RED = 1


class Opaque:
    pass


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


UNSTORABLE: list[tuple[str, Any, str]] = [
    ("a tuple", (1, 2), "$"),
    ("a set", {1}, "$"),
    ("an enum", Color.RED, "$"),
    ("a moment", datetime(2026, 1, 1, tzinfo=UTC), "$"),
    ("bytes", b"x", "$"),
    ("an object", Opaque(), "$"),
    ("a decimal inside", {"a": [1, Decimal(1)]}, "$.a[1]"),
    ("a key that is no text", {"a": {1: 2}}, "$.a"),
    ("not a number", [math.nan], "$[0]"),
    ("infinity", {"x y": math.inf}, '$["x y"]'),
    ("a NUL", "a\x00b", "$"),
    ("a lone surrogate", {"a": "\ud800"}, "$.a"),
    ("a NUL in a key", {"\x00": 1}, "$"),
    ("a whole number beyond reading", 10**5000, "$"),
    ("a nesting beyond reading", nested(5_000), "$"),
    ("a text over the limit", "x" * 2_000_000, "$"),
]


@pytest.mark.parametrize(("value", "path"), [case[1:] for case in UNSTORABLE], ids=[case[0] for case in UNSTORABLE])
async def test_a_result_that_cannot_be_stored_stops_the_job_and_its_effect_is_not_repeated(value: Any, path: str):
    effects: list[int] = []

    async def charge():
        effects.append(1)
        return value

    async def handler(step: Step) -> None:
        await step.run("charge", charge)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    assert effects == [1]
    last = bench.settled[-1]
    assert last is not None
    assert (last.stop_reason, last.error_code) == (StopReason.TERMINAL, "X_PAYLOAD_INVALID")
    assert last.error is not None
    assert "step 'charge'" in last.error
    assert path in last.error or "bytes as JSON" in last.error
    assert bench.steps.records["charge"].status == "failed"


async def test_a_result_that_cannot_be_stored_stops_the_job_even_when_the_handler_goes_on():
    effects: list[int] = []

    async def charge():
        effects.append(1)
        return Opaque()

    async def handler(step: Step) -> None:
        try:
            await step.run("charge", charge)
        except PayloadInvalid:
            raise ConnectionError from None

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    assert effects == [1]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain)
def test_plain_values_come_back_as_what_they_were_or_are_refused(value: Any):
    codec = codec_for(lambda: None, "s")
    try:
        text = codec.encode(value, step="s", limit=LIMIT)
    except PayloadInvalid:
        assert "\\x00" in repr(value) or "\\ud" in repr(value)
        return
    back = codec.decode(text, step="s")
    assert back == value
    assert repr(back) == repr(value)


class Row(TypedDict):
    id: uuid.UUID
    at: datetime


class Page(BaseModel):
    rows: list[Row]
    ratio: float | None = None


def test_annotated_results_come_back_as_their_type():
    def page() -> Page:
        raise NotImplementedError

    value = Page(rows=[{"id": uuid.uuid4(), "at": datetime(2026, 1, 1, tzinfo=UTC)}], ratio=0.1)
    codec = codec_for(page, "s")
    assert codec.decode(codec.encode(value, step="s", limit=LIMIT), step="s") == value


@pytest.mark.parametrize("ratio", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused_inside_of_a_model_too(ratio: float):
    codec = codec_of(Page)
    with pytest.raises(PayloadInvalid) as refused:
        codec.encode(Page(rows=[], ratio=ratio), step="s", limit=LIMIT)
    assert refused.value.path == "$.ratio"


def test_a_value_that_does_not_fit_its_annotation_is_refused_with_the_path():
    codec = codec_of(TypeAdapter(list[int]))
    text = codec.encode(["1", "x"], step="s", limit=LIMIT)
    with pytest.raises(PayloadInvalid) as refused:
        codec.decode(text, step="s")
    assert refused.value.path == "$[1]"


def test_a_serializer_that_breaks_is_a_result_that_cannot_be_stored():
    def broken(value: Any) -> Any:
        raise KeyError(value)

    codec = codec_of(TypeAdapter(Annotated[int, PlainSerializer(broken)]))
    with pytest.raises(PayloadInvalid):
        codec.encode(1, step="s", limit=LIMIT)


async def test_a_type_without_a_json_form_is_refused_before_the_effect():
    effects: list[int] = []

    async def charge() -> Opaque:
        effects.append(1)
        return Opaque()

    async def handler(step: Step) -> None:
        await step.run("charge", charge)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    assert effects == []


async def test_a_stored_result_that_does_not_fit_the_new_annotation_stops_the_run():
    async def old() -> str:
        return "x"

    async def new() -> int:
        return 1

    which = [old]

    async def handler(step: Step) -> None:
        await step.run("a", which[0])
        await step.sleep("1h")

    bench = Bench(handler)
    await bench.run()
    which[0] = new  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    settlement = await bench.run()
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.DEAD, "X_PAYLOAD_INVALID")


def test_an_annotation_that_only_type_checkers_can_read_counts_as_none():
    def unreadable() -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        raise NotImplementedError

    assert codec_for(unreadable, "s").encode([1], step="s", limit=LIMIT) == "[1]"
