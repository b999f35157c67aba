"""Slots under contention: the cap holds at every moment, none is lost, and nobody who waits for one sleeps on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._queue.claims import Beat, HeldSlot
from ultijobs._queue.records import Outcome
from ultijobs._queue.telling import SignalKind
from ultijobs.postgres import PostgresDriver

CAP = 5
JOBS = 300
LEASE = timedelta(seconds=30)
OVER = """
select max(n) from (
  select count(*) as n from x_jobs where state = 'running'
  union all select count(*) from x_job_slots where job_id is not null) x
"""


@pytest.fixture
async def drivers(pg_url: str) -> AsyncIterator[list[PostgresDriver]]:
    drivers = [PostgresDriver(pg_url) for _ in range(4)]
    for driver in drivers:
        await driver.open("worker")
    yield drivers
    for driver in drivers:
        await driver.close()


async def test_however_many_claim_at_once_a_cap_holds_and_no_slot_is_lost(drivers, database, job, ask):
    answers = await drivers[0].enqueue([job(lane="n:send", max_attempts=99) for _ in range(JOBS)])
    ids = [answer.id for answer in answers]
    wanted = replace(ask(3), caps={"send": CAP})
    ends = [Outcome.OK] * 6 + [Outcome.RETRIED, Outcome.RETURNED, Outcome.SUSPENDED]
    over: list[int] = []
    finished = asyncio.Event()

    async def work(driver: PostgresDriver) -> None:
        link = driver.lease_link()
        await link.open()
        while not finished.is_set():
            jobs = await driver.claim(wanted)
            await link.renew([Beat(one.id, one.lease_no, lane=one.lane) for one in jobs], LEASE)
            random.shuffle(jobs)
            for one in jobs:
                await driver.settle([settlement(one, random.choice(ends), lane=one.lane)])
                await driver.let_go([HeldSlot(one.id, one.lease_no, one.queue)])
            await asyncio.sleep(0 if jobs else 0.005)
        await link.close()

    async def meddle() -> None:
        while not finished.is_set():
            await drivers[0].cancel(random.sample(ids, 2))
            await drivers[1].reap([])
            await asyncio.sleep(0.02)

    async def watch() -> None:
        deadline = time.monotonic() + 60
        while await database.fetchval("select count(*) from x_jobs"):
            over.append(await database.fetchval(OVER))
            assert time.monotonic() < deadline
            await asyncio.sleep(0.001)
        finished.set()

    await asyncio.gather(*map(work, drivers), meddle(), watch())
    assert max(over) == CAP
    assert await database.fetchval("select count(*) from x_job_slots where job_id is not null") == 0
    assert await database.fetchval("select count(*) from x_jobs_done") == JOBS
    assert await database.fetchval("select deadlocks from pg_stat_database where datname = current_database()") == 0


async def test_a_slot_that_is_freed_is_told_where_somebody_waits_for_it(drivers, job, ask):
    one, other = drivers[:2]
    await one.enqueue([job(lane="n:send"), job(lane="n:send", tenant_id="acme"), job(lane="n:send,t:acme")])
    told: list[str] = []
    wanted = replace(ask(1), caps={"send": 1})
    async with other.subscribe(lambda signal: told.append(signal.value) if signal.kind is SignalKind.QUEUE else None):
        for waiting in (2, 1, 0):
            [claimed] = await one.claim(wanted)
            told.clear()
            await one.settle([settlement(claimed, lane=claimed.lane)])
            if waiting:
                await eventually(lambda: told == ["default"])
        await one.enqueue([job(queue="mark")])
        await eventually(lambda: told == ["mark"], that="nobody is told of a slot that nobody waits for")


async def test_a_slot_whose_job_was_removed_by_hand_is_found_and_freed(driver, database, job, ask):
    await driver.enqueue([job(lane="n:send"), job(lane="n:send")])
    wanted = replace(ask(1), caps={"send": 1}, lease=timedelta(milliseconds=1))
    [claimed] = await driver.claim(wanted)
    await database.execute("delete from x_jobs where id = $1", claimed.id)
    assert (await eventually(driver.attention)).lapsed
    await driver.reap([])
    assert not (await driver.attention()).lapsed
    assert len(await driver.claim(wanted)) == 1
