"""Several schedulers: one leads, a slot fires once whoever dispatches it, a change of leader loses none."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.eventually import eventually
from tests.unit.scheduler.conftest import LEASE, MINUTE, World, every_minute, one_round, scan_of
from ultijobs import App, Scheduler, task
from ultijobs._service.stop import Stop, StopRequest
from ultijobs.memory import MemoryDriver

SECOND = timedelta(seconds=1)


async def test_one_leads_and_the_others_stand_by(world: World):
    first, second = await world.scheduler(every_minute()), await world.scheduler(every_minute())
    await one_round(first)
    for _ in range(5):
        world.passes(20 * SECOND)
        await asyncio.gather(one_round(first), one_round(second))
    assert len(await world.occurrences("minutely")) == 1
    assert len(world.said("jobs.scheduler.leading")) == 1


async def test_an_occurrence_at_the_change_of_leader_fires_once(world: World):
    first, second = await world.scheduler(every_minute()), await world.scheduler(every_minute())
    await one_round(first)
    world.passes(59 * SECOND)
    await first.leave()
    world.passes(2 * SECOND)
    await one_round(second)
    assert await world.occurrences("minutely") == ["2026-06-01T12:01:00"]


async def test_a_leader_that_died_is_followed_when_its_lease_has_lapsed(world: World):
    first, second = await world.scheduler(every_minute()), await world.scheduler(every_minute())
    await one_round(first)
    world.passes(58 * SECOND)
    await one_round(first)
    world.passes(LEASE - SECOND)
    await one_round(second)
    assert await world.jobs() == []
    world.passes(SECOND)
    await one_round(second)
    assert await world.occurrences("minutely") == ["2026-06-01T12:01:00"]
    await one_round(first)
    assert len(world.said("jobs.scheduler.leadership-lost", logging.WARNING)) == 1
    assert len(await world.jobs()) == 1


async def test_a_leader_that_was_stopped_while_it_asked_stores_nothing_after_its_term(world: World):
    asked, goes_on = asyncio.Event(), asyncio.Event()

    @task(cron="* * * * *", tz="UTC", name="minutely")
    async def slow(occurrence):
        asked.set()
        await goes_on.wait()
        return [scan_of(occurrence)]

    stopped, follower = await world.scheduler(slow), await world.scheduler(every_minute())
    await one_round(stopped)
    world.passes(MINUTE)
    await stopped.round()
    await asked.wait()
    world.passes(LEASE)
    await one_round(follower)
    goes_on.set()
    await stopped.settled()
    assert len(await world.jobs()) == 1
    assert [slot.term for slot in await world.slots("minutely")] == [3]


async def test_the_end_of_summer_time_fires_once_whoever_leads(world: World):
    def at(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    @task(cron="30 2 * * *", tz="Europe/Berlin")
    def nightly(occurrence):
        return [scan_of(occurrence)]

    world.clock.time = at("2026-10-24T12:00:00")
    first, second = await world.scheduler(nightly), await world.scheduler(nightly)
    await one_round(first)
    world.clock.time = at("2026-10-25T00:29:58")
    await one_round(first)
    world.clock.time = at("2026-10-25T00:30:28")
    await one_round(second)
    assert await world.occurrences("nightly") == ["2026-10-25T00:30:00"]
    for time in ("2026-10-25T01:30:00", "2026-10-25T01:31:00", "2026-10-26T01:29:59"):
        world.clock.time = at(time)
        await one_round(second)
    assert len(await world.jobs()) == 1
    world.clock.time = at("2026-10-26T01:30:00")
    await one_round(second)
    assert (await world.occurrences("nightly"))[1:] == ["2026-10-26T01:30:00"]


def named(name: str) -> Any:
    return every_minute(name=name)


async def test_a_task_that_is_declared_no_more_is_retired_and_made_up_for_when_it_is_back(world: World):
    before = await world.scheduler(named("kept"), named("minutely"))
    after = await world.scheduler(named("kept"))
    await one_round(before)
    await before.leave()
    await one_round(after)
    assert (await world.state("minutely")).retired
    assert not (await world.state("kept")).retired
    await after.leave()
    world.passes(MINUTE)
    await one_round(before)
    await one_round(before)
    assert await world.occurrences("minutely") == ["2026-06-01T12:01:00"]
    assert not (await world.state("minutely")).retired


async def test_applications_with_different_tasks_in_one_schema_do_not_wait_for_each_other(world: World):
    shop, crm = await world.scheduler(named("shop")), await world.scheduler(named("crm"))
    for _ in range(4):
        for rounds in (shop, crm):
            await one_round(rounds)
        world.passes(MINUTE / 2)
    for name in ("shop", "crm"):
        assert await world.occurrences(name) == ["2026-06-01T12:01:00"]
        assert not (await world.state(name)).retired
    assert world.said("jobs.scheduler.leadership-lost") == []


async def test_of_each_application_one_scheduler_leads(world: World):
    apps = [[await world.scheduler(named(name)) for _ in range(2)] for name in ("shop", "crm")]
    for first, second in apps:
        await one_round(first)
        await one_round(second)
    world.passes(MINUTE / 3)
    await asyncio.gather(*(one_round(rounds) for both in apps for rounds in both))
    assert len(world.said("jobs.scheduler.leading")) == len(apps)


async def test_an_application_that_is_down_keeps_its_tasks_late_and_after_a_day_they_are_gone(world: World):
    shop, crm = await world.scheduler(named("shop")), await world.scheduler(named("crm"))
    await one_round(shop)
    await shop.leave()
    world.passes(timedelta(hours=23))
    await one_round(crm)
    assert not (await world.state("shop")).retired
    world.passes(timedelta(hours=2))
    await one_round(crm)
    assert (await world.state("shop")).retired
    await one_round(shop)
    await one_round(shop)
    assert await world.occurrences("shop") == ["2026-06-02T13:00:00"]


async def test_while_versions_overlap_each_task_has_one_leader_and_none_waits(world: World):
    old = await world.scheduler(named("kept"))
    new = await world.scheduler(named("kept"), named("added"))
    await one_round(old)
    await one_round(new)
    world.passes(MINUTE)
    await asyncio.gather(one_round(old), one_round(new))
    world.passes(SECOND)
    await asyncio.gather(one_round(old), one_round(new))
    assert await world.occurrences("kept") == ["2026-06-01T12:01:00"]
    assert await world.occurrences("added") == ["2026-06-01T12:01:00"]
    assert len(world.said("jobs.scheduler.dispatched")) == 2
    await old.leave()
    world.passes(MINUTE)
    await one_round(new)
    await one_round(new)
    assert await world.occurrences("kept") == ["2026-06-01T12:01:00", "2026-06-01T12:02:00"]


async def test_a_changed_cron_counts_from_when_the_old_version_is_gone(world: World):
    old = await world.scheduler(every_minute(name="kept", cron="* * * * *"))
    new = await world.scheduler(every_minute(name="kept", cron="*/2 * * * *"), named("added"))
    for _ in range(4):
        for rounds in (old, new):
            await one_round(rounds)
        world.passes(MINUTE / 2)
    assert (await world.state("kept")).cron == "* * * * *"
    await old.leave()
    await one_round(new)
    assert (await world.state("kept")).cron == "*/2 * * * *"
    assert await world.occurrences("kept") == ["2026-06-01T12:01:00"]


async def test_a_scheduler_without_tasks_never_leads(world: World):
    idle = await world.scheduler()
    await one_round(idle)
    assert await world.driver.schedule.leader() is None


async def test_a_stop_lets_a_dispatch_end_and_gives_the_lead_up(world: World):
    rounds = await world.scheduler(every_minute())
    stop = StopRequest()
    running = asyncio.create_task(rounds.run(stop))
    await eventually(world.driver.schedule.states)
    world.passes(MINUTE)
    await eventually(world.jobs)
    stop.ask(Stop.DRAIN)
    await running
    leader = await world.driver.schedule.leader()
    assert leader is not None
    assert not leader.held_by(rounds.holder)
    assert world.said("jobs.scheduler.started") == ["tasks: minutely"]
    assert len(world.said("jobs.scheduler.draining")) == 1


async def test_the_public_scheduler_publishes_what_is_declared_and_ends_when_told():
    driver = MemoryDriver()
    scheduler = Scheduler(App(tasks=[every_minute()], driver=driver), interval="10ms")
    running = asyncio.create_task(scheduler.run())
    await eventually(driver.schedule.states)
    scheduler.stop()
    await running
    (entry,) = await driver.inspect.catalog("task")
    assert (entry.name, entry.declaration["cron"], entry.declaration["tz"]) == ("minutely", "* * * * *", "UTC")


async def test_one_round_by_hand_dispatches_and_leaves_no_leader(world: World):
    scheduler = Scheduler(App(jobs=[], tasks=[every_minute()], driver=world.driver))
    await scheduler.run_once()
    assert (await world.state("minutely")).watermark == world.clock.time
    leader = await world.driver.schedule.leader()
    assert leader is not None
    assert leader.lease_until <= world.clock.time
