"""What an outage leaves behind, by the catch-up mode of a task."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.scheduler.conftest import DAY, MINUTE, World, every_minute, one_round, scan_of
from ultijobs import task
from ultijobs._queue.schedule import SlotOutcome
from ultijobs._scheduler import turns as module


async def test_first_sight_arms_and_fires_nothing(world: World):
    @task(cron="0 3 * * *", tz="UTC")
    def nightly(occurrence):
        return [scan_of(occurrence)]

    first = await world.scheduler(nightly)
    await one_round(first)
    assert await world.jobs() == []
    assert (await world.state("nightly")).watermark == world.clock.time
    await first.leave()
    second = await world.scheduler(nightly)
    await one_round(second)
    world.passes(timedelta(hours=14, minutes=59))
    await one_round(second)
    assert await world.jobs() == []
    world.passes(MINUTE)
    await one_round(second)
    await one_round(second)
    assert await world.occurrences("nightly") == ["2026-06-02T03:00:00"]


async def test_skip_fires_the_latest_missed_occurrence_once_and_then_goes_on(world: World):
    rounds = await world.scheduler(every_minute())
    await one_round(rounds)
    world.passes(DAY + timedelta(seconds=20))
    await one_round(rounds)
    for _ in range(3):
        await one_round(rounds)
    assert await world.occurrences("minutely") == ["2026-06-02T12:00:00"]
    for second in range(300):
        world.passes(timedelta(seconds=1))
        if second % 20 == 0:
            await one_round(rounds)
    await one_round(rounds)
    assert await world.occurrences("minutely") == [f"2026-06-02T12:0{minute}:00" for minute in range(6)]
    skipped, caught_up, *fired = await world.slots("minutely")
    assert (skipped.outcome, skipped.slots, skipped.reason) == ("skipped", 1_439, "catch_up is skip")
    assert skipped.through == datetime(2026, 6, 2, 11, 59, tzinfo=UTC)
    assert caught_up.outcome == "caught-up"
    assert len(fired) == 5


async def test_run_once_fires_the_earliest_missed_occurrence_alone(world: World):
    rounds = await world.scheduler(every_minute(catch_up="run-once"))
    await one_round(rounds)
    world.passes(DAY)
    await one_round(rounds)
    await one_round(rounds)
    assert await world.occurrences("minutely") == ["2026-06-01T12:01:00"]
    caught_up, skipped = await world.slots("minutely")
    assert (caught_up.outcome, skipped.outcome, skipped.slots) == ("caught-up", "skipped", 1_439)
    world.passes(MINUTE)
    await one_round(rounds)
    assert (await world.occurrences("minutely"))[1:] == ["2026-06-02T12:01:00"]


async def test_run_all_is_bounded_for_each_outage_and_tells_what_it_drops(world: World):
    rounds = await world.scheduler(every_minute(catch_up="run-all"))
    await one_round(rounds)
    world.passes(DAY)
    for _ in range(4):
        await one_round(rounds)
    fired = await world.occurrences("minutely")
    assert fired == [*(f"2026-06-02T11:5{minute}:00" for minute in range(1, 10)), "2026-06-02T12:00:00"]
    assert world.said("jobs.scheduler.missed", logging.WARNING) == [
        "1430 occurrences of task minutely were dropped: one outage makes up for 10 at the most"
    ]
    missed = (await world.slots("minutely"))[0]
    assert (missed.outcome, missed.slots) == ("missed", 1_430)
    assert missed.occurrence == datetime(2026, 6, 1, 12, 1, tzinfo=UTC)


async def test_run_all_within_its_bound_drops_nothing(world: World):
    rounds = await world.scheduler(every_minute(catch_up="run-all"))
    await one_round(rounds)
    world.passes(5 * MINUTE)
    await one_round(rounds)
    assert len(await world.occurrences("minutely")) == 5
    assert [slot.outcome for slot in await world.slots("minutely")] == [*["caught-up"] * 4, "fired"]
    assert world.said("jobs.scheduler.missed") == []


@pytest.mark.parametrize("catch_up", ["skip", "run-once", "run-all"])
async def test_one_missed_occurrence_is_made_up_for_in_every_mode(world: World, catch_up: str):
    rounds = await world.scheduler(every_minute(catch_up=catch_up))
    await one_round(rounds)
    world.passes(MINUTE + timedelta(seconds=40))
    await one_round(rounds)
    (slot,) = await world.slots("minutely")
    assert (slot.occurrence.minute, slot.outcome) == (1, SlotOutcome.CAUGHT_UP)


async def test_occurrences_that_fall_into_one_round_are_no_outage(world: World):
    rounds = await world.scheduler(every_minute(cron="* * * * * *"))
    await one_round(rounds)
    world.passes(timedelta(seconds=2))
    await one_round(rounds)
    assert [slot.outcome for slot in await world.slots("minutely")] == ["fired", "fired"]


async def test_a_task_gets_the_occurrence_in_its_own_zone_and_not_the_present(world: World):
    seen: list[datetime] = []

    @task(cron="0 * * * *", tz="Europe/Berlin")
    async def hourly(occurrence: datetime):
        seen.append(occurrence)
        return [scan_of(occurrence)]

    rounds = await world.scheduler(hourly)
    await one_round(rounds)
    world.passes(timedelta(minutes=95))
    await one_round(rounds)
    (occurrence,) = seen
    assert occurrence.isoformat() == "2026-06-01T15:00:00+02:00"
    assert str(occurrence.tzinfo) == "Europe/Berlin"


async def test_a_changed_cron_begins_anew_at_once(world: World):
    yearly = await world.scheduler(every_minute(cron="0 0 1 1 *"))
    await one_round(yearly)
    await yearly.leave()
    world.passes(DAY)
    corrected = await world.scheduler(every_minute(cron="*/5 * * * *"))
    await one_round(corrected)
    assert await world.jobs() == []
    world.passes(5 * MINUTE)
    await one_round(corrected)
    assert await world.occurrences("minutely") == ["2026-06-02T12:05:00"]


async def test_an_outage_of_more_slots_than_are_counted_says_at_least(world: World, monkeypatch):
    monkeypatch.setattr(module, "COUNTED", 100)
    monkeypatch.setattr("ultijobs._scheduler.firing.COUNTED", 100)
    rounds = await world.scheduler(every_minute())
    await one_round(rounds)
    world.passes(DAY)
    await one_round(rounds)
    (told,) = world.said("jobs.scheduler.skipped")
    assert told.startswith("at least 100 occurrences")
    assert await world.occurrences("minutely") == ["2026-06-02T12:00:00"]


async def test_a_wait_ends_when_the_next_occurrence_is_due(world: World):
    rounds = await world.scheduler(every_minute(cron="* * * * *"))
    await one_round(rounds)
    world.passes(timedelta(seconds=59, milliseconds=700))
    assert await one_round(rounds) == timedelta(milliseconds=300)
