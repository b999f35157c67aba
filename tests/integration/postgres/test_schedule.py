"""Dispatches of several connections: the term is held until the commit, and a slot is one row whoever writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.support.eventually import eventually
from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob
from ultijobs._queue.schedule import Arming, Dispatch, SlotOutcome
from ultijobs.postgres import PostgresDriver

SHORT = timedelta(milliseconds=300)
SLOT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def other(pg_url: str) -> AsyncIterator[PostgresDriver]:
    driver = PostgresDriver(pg_url)
    await driver.open("scheduler")
    yield driver
    await driver.close()


def dispatch(key: str) -> Dispatch:
    job = NewJob(id=new_id(), name="send", input="{}", idempotency_key=key, run_at=SLOT)
    return Dispatch("digest", SLOT, SlotOutcome.FIRED, (job,), SLOT)


async def test_who_takes_the_lead_over_waits_for_a_dispatch_and_sees_what_it_decided(
    driver: PostgresDriver, other: PostgresDriver, database: asyncpg.Connection
):
    term = (await driver.schedule.lead("a", lease=SHORT)).term
    await driver.schedule.arm("a", term, [Arming("digest", "* * * * *", "UTC")])
    # Somebody holds the key of the job, so that the dispatch stands still between its fence and its commit.
    async with database.transaction():
        await database.execute(
            "insert into x_jobs (id, run_id, name, idempotency_key) values ($1, $1, 'send', 'k')", new_id()
        )
        standing = asyncio.create_task(driver.schedule.dispatch("a", term, dispatch("k")))
        await eventually(lambda: database.fetchval("select lease_until < clock_timestamp() from x_scheduler_leader"))
        taking = asyncio.create_task(other.schedule.lead("b", lease=timedelta(seconds=30)))
        assert not (await asyncio.wait({taking, standing}, timeout=0.2))[0]
    done = await standing
    assert done is not None
    assert done.fresh
    leader = await taking
    assert (leader.holder, leader.term) == ("b", term + 1)
    again = await other.schedule.dispatch("b", leader.term, dispatch("k2"))
    assert again is not None
    assert not again.fresh
    assert await database.fetchval("select count(*) from x_jobs") == 1
    assert await driver.schedule.dispatch("a", term, dispatch("k3")) is None


async def test_a_task_that_passes_to_another_set_during_a_dispatch_fires_once(
    driver: PostgresDriver, other: PostgresDriver, database: asyncpg.Connection
):
    term = (await driver.schedule.lead("a", lease=SHORT, scope="old")).term
    await driver.schedule.arm("a", term, [Arming("digest", "* * * * *", "UTC")])
    async with database.transaction():
        await database.execute(
            "insert into x_jobs (id, run_id, name, idempotency_key) values ($1, $1, 'send', 'k')", new_id()
        )
        standing = asyncio.create_task(driver.schedule.dispatch("a", term, dispatch("k")))
        await eventually(lambda: database.fetchval("select lease_until < clock_timestamp() from x_scheduler_leader"))
        later = (await other.schedule.lead("b", lease=timedelta(seconds=30), scope="new")).term
        await other.schedule.arm("b", later, [Arming("digest", "* * * * *", "UTC")])
        firing = asyncio.create_task(other.schedule.dispatch("b", later, dispatch("k2")))
        assert not (await asyncio.wait({standing, firing}, timeout=0.2))[0]
    first, second = await standing, await firing
    assert first is not None
    assert second is not None
    assert (first.fresh, second.fresh) == (True, False)
    assert await database.fetchval("select count(*) from x_jobs") == 1


async def test_many_who_ask_at_once_make_one_leader(pg_url: str):
    drivers = [PostgresDriver(pg_url) for _ in range(6)]
    for each in drivers:
        await each.open("scheduler")
    try:
        leaders = await asyncio.gather(
            *(each.schedule.lead(f"s{n}", lease=timedelta(seconds=30)) for n, each in enumerate(drivers))
        )
    finally:
        for each in drivers:
            await each.close()
    assert len({(leader.holder, leader.term) for leader in leaders}) == 1
    assert sum(leader.held_by(f"s{n}") for n, leader in enumerate(leaders)) == 1


async def test_who_stands_by_and_who_leads_write_nothing_within_a_third_of_the_lease(
    driver: PostgresDriver, database: asyncpg.Connection
):
    await driver.schedule.lead("a", lease=timedelta(minutes=5))
    before = await database.fetchval("select xmin::text || ctid::text || xmax::text from x_scheduler_leader")
    for holder in ("a", "b"):
        await driver.schedule.lead(holder, lease=timedelta(minutes=5))
    after = await database.fetchval("select xmin::text || ctid::text || xmax::text from x_scheduler_leader")
    assert after == before
