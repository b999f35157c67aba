"""One worker removes what is over its time: the one that started first, for as long as it lives."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import HandClock
from tests.contract.test_workers import beat
from ultijobs import Retention
from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.records import NewJob
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retention.declared import declared
from ultijobs._service.trouble import Trouble
from ultijobs._worker.upkeep import Upkeep
from ultijobs.memory import MemoryDriver

DAY = timedelta(days=1)
LEASE = timedelta(seconds=30)


class World:
    """A queue in memory with workers that beat."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.driver = MemoryDriver(self.clock)

    async def worker(self, retention: Retention | None = None, name: str = "charge") -> tuple[UUID, Upkeep]:
        instance = new_id()
        await self.driver.beat(beat(name, instance, lease_ms=30_000))
        self.clock.time += timedelta(milliseconds=1)
        return instance, Upkeep(
            self.driver,
            declared=[CatalogEntry("job", name, "default", {"retention": declared(retention or Retention())})],
            retention=retention or Retention(),
            instance=instance,
            worker_id=name,
            trouble=Trouble(name),
        )

    async def act_of_long_ago(self) -> None:
        await self.driver.open_activity(ActivityEntry("ana", "cli", "pause", "queue"))
        self.clock.time += 181 * DAY

    async def acts(self) -> int:
        return len(await self.driver.inspect.activity())


@pytest.fixture
def world() -> World:
    return World()


async def test_the_worker_that_started_first_does_it_and_no_other(world: World):
    await world.act_of_long_ago()
    _, first = await world.worker()
    _, second = await world.worker()
    await second.round()
    assert await world.acts() == 1
    await first.round()
    assert await world.acts() == 0


async def test_when_it_goes_the_next_one_takes_its_place(world: World):
    await world.act_of_long_ago()
    gone, _ = await world.worker()
    _, second = await world.worker()
    await world.driver.beat(replace(beat("w", gone), state="stopped"))
    await second.round()
    assert await world.acts() == 0


async def test_a_worker_that_fell_silent_holds_nothing_up(world: World):
    await world.act_of_long_ago()
    await world.worker()
    world.clock.time += LEASE + timedelta(seconds=1)
    _, second = await world.worker()
    await second.round()
    assert await world.acts() == 0


async def test_it_keeps_to_the_longest_time_that_any_application_declares(world: World):
    await world.act_of_long_ago()
    entry = CatalogEntry("job", "of-another", "default", {"retention": declared(Retention(activity="365d"))})
    await world.driver.publish_catalog([entry, CatalogEntry("job", "odd", "default", {"retention": {"done_ms": "?"}})])
    _, upkeep = await world.worker()
    await upkeep.round()
    assert await world.acts() == 1
    world.clock.time += 8 * DAY
    _, later = await world.worker()
    await later.round()
    assert await world.acts() == 0


async def test_an_older_declaration_of_its_own_names_does_not_bind_it(world: World):
    await world.act_of_long_ago()
    entry = CatalogEntry("job", "charge", "default", {"retention": declared(Retention(activity="365d"))})
    await world.driver.publish_catalog([entry])
    _, upkeep = await world.worker(Retention(activity="1d"))
    await upkeep.round()
    assert await world.acts() == 0


async def test_while_it_runs_its_declarations_stay_alive(world: World, monkeypatch: pytest.MonkeyPatch):
    _, upkeep = await world.worker()
    entry = CatalogEntry("job", "charge", "default", {"retention": declared(Retention())})
    await world.driver.publish_catalog([entry])
    world.clock.time += DAY
    upkeep._confirm_at = 0.0
    await upkeep.round()
    (seen,) = await world.driver.inspect.catalog()
    assert seen.last_seen == world.clock.now()


async def test_jobs_in_a_queue_that_nobody_serves_are_warned_of_by_one_worker(
    world: World, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "ultijobs")
    await world.driver.enqueue([NewJob(id=new_id(), name="print", input="null", queue="letters") for _ in range(2)])
    _, first = await world.worker()
    _, second = await world.worker()
    for upkeep in (first, second, first):
        await upkeep.round()
    said = [line.getMessage() for line in caplog.records if line.__dict__["event"] == "jobs.worker.queue-unserved"]
    assert said == ["no worker serves the queue 'letters': 2 due"]


async def test_a_part_that_fails_keeps_no_other_from_its_work(world: World, monkeypatch: pytest.MonkeyPatch):
    async def broken() -> None:
        raise RuntimeError("no rights")

    await world.act_of_long_ago()
    _, upkeep = await world.worker()
    monkeypatch.setattr(upkeep._alarms, "sound", broken)
    await upkeep.round()
    assert await world.acts() == 0
