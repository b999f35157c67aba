"""When a task is due: over clock changes, from any instant, forward and backward."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from ultijobs._definitions.calendar import Calendar

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def occurrences(cron: str, tz: str, after: str, until: str) -> list[str]:
    found = Calendar(cron, ZoneInfo(tz)).between(at(after), at(until))
    return [each.astimezone(UTC).strftime("%m-%d %H:%M") for each in found]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 2 * * *", ["03-29 01:00"]),
        ("30 2 * * *", ["03-29 01:00"]),
        ("30 2,3 * * *", ["03-29 01:00", "03-29 01:30"]),
        ("0 30 2 * * *", ["03-29 01:00"]),
    ],
)
def test_a_local_time_that_the_start_of_summer_time_leaves_out_fires_once_at_the_first_valid_instant(cron, expected):
    assert occurrences(cron, BERLIN, "2026-03-28T12:00", "2026-03-29T12:00") == expected


def test_a_text_with_stars_has_no_hole_and_no_double_when_summer_time_begins():
    found = occurrences("*/15 * * * *", BERLIN, "2026-03-29T00:30", "2026-03-29T01:15")
    assert found == ["03-29 00:45", "03-29 01:00", "03-29 01:15"]


def test_a_local_time_that_comes_twice_fires_once_at_its_first_pass():
    found = occurrences("30 2 * * *", BERLIN, "2026-10-24T12:00", "2026-10-26T12:00")
    assert found == ["10-25 00:30", "10-26 01:30"]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/15 * * * *", ["00:45", "01:00", "01:15", "01:30", "01:45", "02:00"]),
        ("0 * * * *", ["01:00", "02:00"]),
    ],
)
def test_a_text_with_stars_has_no_hole_when_summer_time_ends(cron, expected):
    found = occurrences(cron, BERLIN, "2026-10-25T00:30", "2026-10-25T02:00")
    assert [each.removeprefix("10-25 ") for each in found] == expected


def test_a_change_of_half_an_hour_is_a_change_like_any_other():
    found = occurrences("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T16:00", "2026-04-06T00:00")
    assert found == ["04-04 14:45", "04-05 15:15"]


def test_an_occurrence_is_aware_and_says_the_offset_of_its_own_day():
    calendar = Calendar("0 12 * * *", ZoneInfo(BERLIN))
    found = [each.isoformat() for each in calendar.between(at("2026-10-24T00:00"), at("2026-10-26T00:00"))]
    assert found == ["2026-10-24T12:00:00+02:00", "2026-10-25T12:00:00+01:00"]


def test_seconds_are_walked_when_the_text_has_them():
    calendar = Calendar("*/20 * * * * *", ZoneInfo("UTC"))
    found = [each.second for each in calendar.between(at("2026-01-01T00:00"), at("2026-01-01T00:01"))]
    assert found == [20, 40, 0]


def test_the_latest_is_found_at_the_instant_itself_and_a_fraction_later_but_not_before():
    calendar = Calendar("0 3 * * *", ZoneInfo("UTC"))
    due = at("2026-06-01T03:00")
    tick = timedelta(microseconds=1)
    assert calendar.latest(due) == due
    assert calendar.latest(due + tick) == due
    assert calendar.latest(due - tick) == due - timedelta(days=1)
    assert calendar.after(due - tick) == due
    assert calendar.after(due) == due + timedelta(days=1)


def test_the_latest_of_ten_years_of_seconds_takes_no_walk(monkeypatch):
    steps = 0
    step = CronSim.__next__

    def counted(self):
        nonlocal steps
        steps += 1
        return step(self)

    monkeypatch.setattr(CronSim, "__next__", counted)
    assert Calendar("* * * * * *", ZoneInfo("UTC")).latest(at("2036-01-01T00:00")) == at("2036-01-01T00:00")
    assert steps == 1


CHANGES = [
    (BERLIN, "2026-03-28T00:00"),
    (BERLIN, "2026-10-24T00:00"),
    ("Australia/Lord_Howe", "2026-04-03T00:00"),
    ("Australia/Lord_Howe", "2026-10-02T00:00"),
    ("America/Sao_Paulo", "2018-11-03T00:00"),
    ("America/Sao_Paulo", "2018-02-16T00:00"),
    ("Africa/Casablanca", "2026-02-14T00:00"),
    ("Asia/Beirut", "2026-03-27T00:00"),
    ("America/Havana", "2026-10-31T00:00"),
    ("Pacific/Apia", "2011-12-28T00:00"),
]
TEXTS = ["*/20 * * * *", "30 2 * * *", "0,30 1-3 * * *", "*/20 2 * * *", "15 */3 * * *", "0 0 * * *", "45 1 * * *"]
DAYS = timedelta(days=3)
MINUTE = timedelta(minutes=1)


def by_hand(cron: str, zone: ZoneInfo, begin: datetime) -> list[datetime]:
    """The rule, minute by minute: no walk of cron texts, only whether one fits a local time."""
    text = CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001 - only its fields are used
    minute, hour = cron.split()[:2]

    def fits(local: datetime) -> bool:
        return local.minute in text.minutes and local.hour in text.hours and text.match_day(local.date())

    def local_of(instant: datetime) -> datetime:
        return instant.astimezone(zone).replace(tzinfo=None, fold=0)

    end = begin + DAYS
    if minute.startswith("*") or hour.startswith("*"):
        instants = [begin + count * MINUTE for count in range(1, int(DAYS / MINUTE) + 1)]
        return [instant for instant in instants if fits(local_of(instant))]
    found = set()
    local = begin.replace(tzinfo=None) - timedelta(days=2)
    while local < end.replace(tzinfo=None) + timedelta(days=2):
        if fits(local):
            valid = local
            while local_of(valid.replace(tzinfo=zone).astimezone(UTC)) != valid:
                valid += MINUTE
            found.add(valid.replace(tzinfo=zone).astimezone(UTC))
        local += MINUTE
    return sorted(instant for instant in found if begin < instant <= end)


@pytest.mark.parametrize(("tz", "begin"), CHANGES)
@pytest.mark.parametrize("cron", TEXTS)
def test_both_ways_agree_with_the_rule_applied_minute_by_minute(cron, tz, begin):
    zone, start = ZoneInfo(tz), at(begin)
    calendar = Calendar(cron, zone)
    expected = by_hand(cron, zone, start)
    assert [each.astimezone(UTC) for each in calendar.between(start, start + DAYS)] == expected
    dice = random.Random(tz + cron)
    for instant in [*expected, *(start + dice.random() * DAYS for _ in range(30))]:
        before = [each for each in expected if each <= instant]
        if before:
            latest = calendar.latest(instant)
            assert latest is not None
            assert latest.astimezone(UTC) == before[-1]
