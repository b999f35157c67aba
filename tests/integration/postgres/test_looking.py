"""Looking at a queue takes no lock that anybody could wait for, and waits for none."""

from __future__ import annotations

import asyncio

import asyncpg

from tests.integration.postgres.conftest import settlement
from ultijobs._queue.records import Outcome
from ultijobs.inspection import Inspector
from ultijobs.postgres import PostgresDriver

TABLES = "select relname from pg_class where relname like 'x\\_%' and relkind in ('r', 'p')"
WAITING = "select count(*) from pg_locks where not granted"


async def test_every_read_is_answered_while_somebody_keeps_all_writers_out(pg_url, driver, database, job, ask):
    await driver.enqueue([job(idempotency_key=str(n)) for n in range(4)])
    dead, done, *_ = await driver.claim(ask(3))
    await driver.settle([settlement(dead, Outcome.DEAD, error="ValueError: no"), settlement(done)])
    async with Inspector.connect(pg_url) as api, asyncio.timeout(20):
        reads = (
            api.overview, api.stats, api.queues, api.jobs, api.causes, api.leases, api.workers, api.catalog,
            api.activity, api.events, api.tasks, api.leader, api.slots, api.backfills, api.passes, api.outbox,
            api.outbox_depth, api.expired, api.examine, lambda: api.job(dead.id, with_input=True),
            lambda: api.why(dead.id), lambda: api.count("state:dead"), lambda: api.find(dead.id.hex[-8:]),
        )  # fmt: skip
        async with database.transaction():
            # Whoever takes more than the lock of a plain read would wait here.
            for row in await database.fetch(TABLES):
                await database.execute(f"lock table {row[0]} in exclusive mode")
            for read in reads:
                await read()
                assert await database.fetchval(WAITING) == 0


async def test_an_enqueue_beside_a_reader_of_all_tables_waits_for_nothing(
    driver: PostgresDriver, database: asyncpg.Connection, job
):
    async with database.transaction(isolation="repeatable_read"):
        await database.fetch("select count(*) from x_jobs_all")
        for _ in range(5):
            await driver.enqueue([job()])
            assert await database.fetchval(WAITING) == 0
    assert await database.fetchval("select count(*) from x_jobs") == 5
