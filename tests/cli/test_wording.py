"""Ages, counts and ids read as on every other screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui import data
from ultijobs.inspection import Count
from ultijobs_cli import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (4, "4s"),
        (59.9, "59s"),
        (62, "1m02s"),
        (599, "9m59s"),
        (600, "10m"),
        (14 * 60 + 30, "14m"),
        (3_599, "59m"),
        (3 * 3_600 + 600, "3h10m"),
        (3_600, "1h"),
        (52 * 3_600, "2d4h"),
        (-5, "0s"),
    ],
)
def test_ages_are_short_and_never_negative(seconds: float, text: str) -> None:
    assert wording.duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (Count(812), "812"),
        (Count(10_000, "capped"), "10,000+"),
        (Count(2_100_000, "estimate"), "~2.1M"),
        (Count(2_000_000, "estimate"), "~2.0M"),
        (Count(21_400, "estimate"), "~21.4k"),
        (Count(9_999, "estimate"), "~9,999"),
    ],
)
def test_a_count_says_how_far_it_can_be_trusted(count: Count, text: str) -> None:
    assert wording.count(count) == text


@pytest.mark.parametrize(
    ("running", "capacity", "text"),
    [(3, 16, "3/16"), (16, 16, "16/16"), (17, 16, "16/16 +1"), (1_200, 0, "0/0 +1,200")],
)
def test_jobs_beyond_the_slots_stand_apart(running: int, capacity: int, text: str) -> None:
    assert wording.slots(running, capacity) == text


@pytest.mark.parametrize(("state", "text"), [("suspended", "1/5"), ("ready", "0/5"), ("running", "0/5")])
def test_a_job_that_waits_within_an_attempt_is_in_it(state: str, text: str) -> None:
    assert wording.attempts(replace(data.job(1), state=state, attempt=0, max_attempts=5)) == text


def test_an_id_shows_the_digits_that_commands_take() -> None:
    assert wording.tail(UUID("01a228dc-2035-7277-901c-5255b18d17b8")) == "…b18d17b8"


def test_what_lies_ahead_says_so() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert wording.until(now + timedelta(minutes=12), now) == "in 12m"
    assert wording.until(now - timedelta(minutes=12), now) == "now"


@given(st.timedeltas(min_value=timedelta(days=-10), max_value=timedelta(days=36_500)))
def test_no_age_is_wider_than_its_column(value: timedelta) -> None:
    assert len(wording.duration(value)) <= len("36500d23h")
