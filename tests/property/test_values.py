"""What is written in one form and read in another says the same, for any value."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ultijobs._definitions.cron import normalise
from ultijobs._durations import LONGEST, parse, render
from ultijobs._json import decode, encode
from ultijobs._retry import RetryPolicy
from ultijobs._text import clip, inert, storable, unstorable
from ultijobs.errors import CronInvalid, PayloadInvalid

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=30
)
any_text = st.text(alphabet=st.characters(exclude_categories=()))
spans = st.integers(0, LONGEST // timedelta(milliseconds=1)).map(lambda ms: timedelta(milliseconds=ms))


@given(spans)
def test_a_rendered_duration_reads_back(span):
    assert parse(render(span), what="x") == span
    assert parse(span, what="x") == span


@given(values)
def test_a_stored_value_comes_back_equal_and_of_the_same_type_or_is_refused(value):
    try:
        text = encode(value, what="output", exact=True)
    except PayloadInvalid as error:
        assert error.path is not None  # noqa: PT017 - what is refused is the point
        return
    again = decode(text)
    assert again == value
    assert type(again) is type(value)
    assert unstorable(text) is None
    assert "\\u0000" not in text.replace("\\\\", "")


@given(any_text, st.integers(60, 2_000))
def test_a_clipped_text_is_storable_and_fits(text, limit):
    clipped = clip(text, limit)
    assert len(clipped.encode()) <= limit
    assert unstorable(clipped) is None
    assert unstorable(storable(text)) is None


@given(any_text)
def test_an_inert_line_is_one_line_and_prints_no_control(text):
    line = inert(text, line=True)
    assert line == inert(line, line=True)
    assert len(line.splitlines()) <= 1
    assert not any(ord(each) < 0x20 or 0x7F <= ord(each) <= 0x9F for each in line)


@given(
    st.integers(1, 50),
    st.sampled_from(["fixed", "linear", "exponential"]),
    st.floats(0, 10_000),
    st.floats(0, 10_000),
    st.integers(1, 5_000),
)
def test_no_wait_is_longer_than_the_longest_or_shorter_than_half(attempts, backoff, delay, most, attempt):
    policy = RetryPolicy(attempts, backoff, delay, most)
    plain = RetryPolicy(attempts, backoff, delay, most, jitter=False)
    whole = plain.delay_for(attempt)
    assert timedelta(0) <= whole <= policy.max_delay
    assert whole / 2 - timedelta(milliseconds=1) <= policy.delay_for(attempt) <= whole
    assert plain.schedule() == [plain.delay_for(each) for each in range(1, attempts)]


@given(st.lists(st.text(alphabet="0123456789*/-,?LW#@ABDEFJMNORSTUVY ", max_size=8), min_size=1, max_size=7))
def test_any_cron_text_is_read_or_refused_with_our_own_error(fields):
    try:
        read = normalise(" ".join(fields), "task x: cron")
    except CronInvalid:
        return
    assert normalise(read, "task x: cron") == read
