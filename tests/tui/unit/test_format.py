"""Ages, counts and ids are written one way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.tui.data import NOW, uid
from ultijobs.inspection import Count
from ultijobs_tui import format as fmt


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (None, "–"), (0, "0s"), (-5_000, "0s"), (400, "0.4s"), (4_000, "4s"), (59_999, "59s"), (62_000, "1m02s"),
        (599_000, "9m59s"), (842_000, "14m"), (3_600_000, "1h"), (11_400_000, "3h10m"), (187_200_000, "2d4h"),
        (9_000_000_000, "104d"),
    ],
)  # fmt: skip
def test_an_age_is_short_and_never_negative(ms: float | None, written: str) -> None:
    assert fmt.age(ms) == written


def test_an_exact_age_keeps_its_seconds_below_an_hour() -> None:
    assert fmt.exact_age(842_000) == "14m02s"


@pytest.mark.parametrize(
    ("value", "wide", "narrow"),
    [
        (Count(812), "812", "812"), (Count(51_201), "51,201", "51.2k"), (Count(10_000, "capped"), "10,000+", "10.0k+"),
        (Count(2_080_000, "estimate"), "~2.1M", "~2.1M"), (Count(0, "capped"), "?", "?"), (Count(0), "0", "0"),
    ],
)  # fmt: skip
def test_a_count_says_how_far_it_can_be_trusted(value: Count, wide: str, narrow: str) -> None:
    assert (fmt.count(value), fmt.short_count(value)) == (wide, narrow)


def test_an_id_is_its_tail() -> None:
    assert fmt.short_id(uid(1)) == f"…{str(uid(1))[-8:]}"


def test_what_is_due_is_now_and_what_comes_is_in() -> None:
    assert fmt.due(NOW - timedelta(hours=1), NOW) == "now"
    assert fmt.due(NOW + timedelta(seconds=41), NOW) == "in 41s"


def test_a_time_of_another_day_carries_its_date() -> None:
    assert fmt.clock(datetime(2026, 3, 13, 9, 0, tzinfo=UTC), now=NOW) == "03-13 09:00"


@pytest.mark.parametrize(
    ("ms", "written"), [(0.4, "0ms"), (12, "12ms"), (10_000, "10.0s"), (200_000, "3m20s"), (None, "–")]
)
def test_a_span_of_work_keeps_what_matters(ms: float | None, written: str) -> None:
    assert fmt.took(ms) == written


def test_a_spark_is_as_long_as_its_values_and_flat_without_any() -> None:
    assert fmt.spark([0, 1, 2, 4], 10) == "▁▃▅█"
    assert fmt.spark([0, 0], 10) == "▁▁"
    assert fmt.spark([], 10) == ""
