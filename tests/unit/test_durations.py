"""Durations: what is read, and that nothing else is."""

import math
from datetime import timedelta

import pytest

from ultijobs._durations import parse, render
from ultijobs.errors import DurationInvalid, Invariant


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30s", 30),
        ("3d", 259_200),
        ("1h30m", 5_400),
        (" 1 h 30 min ", 5_400),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("2w", 1_209_600),
        ("5 sec", 5),
        ("1hr", 3_600),
        ("PT30S", 30),
        ("P1DT2H3M4.5S", 93_784.5),
        ("P2W", 1_209_600),
        (0, 0),
        (90, 90),
        (0.25, 0.25),
        (timedelta(minutes=2), 120),
        ("60d", 5_184_000),
    ],
)
def test_a_duration_is_read_as_written(value, seconds):
    assert parse(value, what="timeout") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "30",
        "soon",
        "P",
        "PT",
        "P1M",
        "P1DT",
        "1h soon",
        "-1s",
        "1 month",
        "1e3s",
        "٣s",
        True,
        None,
        b"1s",
        [1],
    ],
)
def test_what_cannot_be_read_is_refused_by_name(value):
    with pytest.raises(DurationInvalid, match="job charge: delay"):
        parse(value, what="job charge: delay")


@pytest.mark.parametrize(
    "value", [-1, -0.001, math.nan, math.inf, 10**400, timedelta(seconds=-1), "999999w", timedelta.max]
)
def test_what_is_no_span_of_time_is_refused(value):
    with pytest.raises(DurationInvalid, match="finite"):
        parse(value, what="delay")


@pytest.mark.parametrize("value", [0, "0s", -1, math.nan, math.inf, 0.0001, timedelta(0)])
def test_a_setting_that_must_be_positive_refuses_the_rest_as_a_broken_rule(value):
    with pytest.raises(Invariant, match="job charge: timeout"):
        parse(value, what="job charge: timeout", positive=True)


@pytest.mark.parametrize("text", ["0s", "250ms", "1h30m", "60d", "1d1h1m1s1ms"])
def test_a_rendered_duration_reads_back(text):
    assert render(parse(text, what="x")) == text
