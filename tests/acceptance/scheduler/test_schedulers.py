"""Schedulers as real processes: a change of leader, however it comes, neither loses a slot nor fires one twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from tests.faults.proxy import Proxy
from tests.support.eventually import eventually
from tests.support.scenes import Scene, WorkerProcess, scene

SLOTS = "select occurrence from x_schedule_slots where outcome in ('fired', 'caught-up') order by 1"


@pytest.fixture
async def stage(pg_url: str) -> AsyncIterator[Scene]:
    async with scene(pg_url, "tests.support.ticking:app") as stage:
        yield stage


def scheduler(stage: Scene, name: str, *, lease: str, url: str | None = None) -> WorkerProcess:
    words = ["--interval", "200ms", "--lease", lease, "--log-format", "json"]
    return stage.spawn(name, ["-m", "ultijobs_cli", "scheduler", "--app", stage.app, *words], url)


async def slots(stage: Scene, count: int) -> list[datetime]:
    """The slots that were fired, once there are `count`."""

    async def enough() -> list[datetime]:
        found = [row["occurrence"] for row in await stage.fetch(SLOTS)]
        return found if len(found) >= count else []

    try:
        return await eventually(enough, within=40, that=f"{count} slots")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{stage.logs()}") from None


async def leads(stage: Scene, *schedulers: WorkerProcess) -> tuple[WorkerProcess, WorkerProcess]:
    """Who leads and who stands by."""
    first, second = schedulers
    await eventually(lambda: first.lines("jobs.scheduler.leading") or second.lines("jobs.scheduler.leading"), within=40)
    return (first, second) if first.lines("jobs.scheduler.leading") else (second, first)


async def each_second_fired_once(stage: Scene) -> None:
    found = [row["occurrence"] for row in await stage.fetch(SLOTS)]
    seconds = [found[0] + timedelta(seconds=number) for number in range(len(found))]
    assert found == seconds
    keys = await stage.fetch("select idempotency_key as key from x_jobs_all where name = 'tick'")
    expected = {f"secondly:{each.isoformat().replace('+00:00', 'Z')}:{each.isoformat()}" for each in found}
    assert len(keys) == len(found)
    assert {row["key"] for row in keys} == expected
    assert await stage.value("select count(*) from x_schedule_slots where outcome in ('missed', 'skipped')") == 0


async def test_a_leader_that_is_killed_loses_no_slot_and_fires_none_twice(stage: Scene):
    one, other = scheduler(stage, "one", lease="1s"), scheduler(stage, "other", lease="1s")
    await slots(stage, 2)
    leader, follower = await leads(stage, one, other)
    leader.kill()
    await follower.said("jobs.scheduler.leading")
    before = len(await slots(stage, 2))
    await slots(stage, before + 3)
    follower.terminate()
    assert await follower.exit_code() == 0
    await each_second_fired_once(stage)
    assert await stage.value("select term from x_scheduler_leader") == 2


async def test_a_leader_that_is_told_to_stop_gives_the_lead_up_at_once(stage: Scene):
    one, other = scheduler(stage, "one", lease="1h"), scheduler(stage, "other", lease="1h")
    await slots(stage, 1)
    leader, follower = await leads(stage, one, other)
    await follower.said("jobs.scheduler.started")
    leader.terminate()
    assert await leader.exit_code() == 0
    assert leader.lines("jobs.scheduler.draining")
    await follower.said("jobs.scheduler.leading")
    await slots(stage, len(await slots(stage, 1)) + 2)
    follower.terminate()
    assert await follower.exit_code() == 0
    await each_second_fired_once(stage)


async def test_a_leader_that_was_stopped_and_goes_on_learns_that_its_term_is_over(stage: Scene):
    one, other = scheduler(stage, "one", lease="1s"), scheduler(stage, "other", lease="1s")
    await slots(stage, 1)
    leader, follower = await leads(stage, one, other)
    leader.stop()
    await follower.said("jobs.scheduler.leading")
    leader.go_on()
    await leader.said("jobs.scheduler.leadership-lost")
    await slots(stage, len(await slots(stage, 1)) + 2)
    await each_second_fired_once(stage)


async def test_a_worker_dispatches_the_tasks_beside_its_jobs_unless_told_otherwise(stage: Scene):
    words = ["--app", stage.app, "--log-format", "json", "--poll", "200ms", "--name", "plain", "--no-scheduler"]
    plain = stage.spawn("plain", ["-m", "ultijobs_cli", "worker", *words])
    await plain.said("jobs.worker.started")
    await eventually(lambda: stage.value("select count(*) from x_workers"))
    assert await stage.value("select count(*) from x_scheduler_leader") == 0
    plain.terminate()
    assert await plain.exit_code() == 0
    assert plain.lines("jobs.scheduler.started") == []
    worker = await stage.worker("w1")
    await stage.effect("tick", 2)
    worker.terminate()
    assert await worker.exit_code() == 0
    assert await stage.value("select lease_until <= now() from x_scheduler_leader")
    await each_second_fired_once(stage)


async def test_a_database_that_is_away_is_waited_for_and_what_was_missed_is_made_up_for(stage: Scene, pg_url: str):
    with Proxy(pg_url) as proxy:
        proxy.refuse()
        alone = scheduler(stage, "alone", lease="2s", url=proxy.url)
        await alone.said("jobs.database.away")
        proxy.heal()
        await slots(stage, 2)
        assert await stage.value("select count(*) from pg_stat_activity where application_name = 'ultijobs-scheduler'")
        proxy.refuse()
        await eventually(lambda: len(alone.lines("jobs.database.away")) == 2, within=40)
        proxy.heal()
        await eventually(lambda: len(alone.lines("jobs.database.back")) == 2, within=40)
        await slots(stage, len(await slots(stage, 2)) + 2)
        alone.terminate()
        assert await alone.exit_code() == 0
    await each_second_fired_once(stage)
