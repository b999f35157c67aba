"""What retry and cancel mean for rows that other sessions hold, and for rows that they refuse."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._queue.records import Outcome, RequeueAsk, StopReason
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs._queue.views import Sort
from ultijobs._queue.where import ANY
from ultijobs.inspection import Inspector, parse_where
from ultijobs.postgres import PostgresDriver

WAITING = "select count(*) from pg_locks where not granted"
BYTES = """\
select x.place, x.ctid, x.xmin, x.id, x.row from (
  select tableoid::regclass::text as place, ctid::text, xmin::text, id, j::text as row from x_jobs j
  union all
  select tableoid::regclass::text, ctid::text, xmin::text, id, j::text from x_jobs_done j) x order by x.id"""


async def dead(driver: PostgresDriver, job: Any, ask: Any, **options: Any) -> Any:
    await driver.enqueue([job(**options)])
    (claimed,) = await driver.claim(ask(1))
    stop = settlement(claimed, Outcome.DEAD, stop_reason=StopReason.TERMINAL, error_code="X", error="no")
    await driver.settle([stop])
    return claimed


async def record(driver: PostgresDriver, claimed: Any, name: str) -> None:
    write = StepWrite(
        job_id=claimed.id,
        run_id=claimed.run_id,
        lease_no=claimed.lease_no,
        name=name,
        kind=StepKind.RUN,
        status=StepStatus.COMPLETED,
        position=1,
        output="1",
    )
    (answer,) = await driver.record_steps([write])
    assert answer.held


async def test_a_refused_row_is_left_byte_for_byte(driver: PostgresDriver, database: Any, job: Any, ask: Any) -> None:
    stopped = await dead(driver, job, ask)
    await driver.enqueue([job()])
    (finished,) = await driver.claim(ask(1))
    await driver.settle([settlement(finished)])
    before = await database.fetch(BYTES)
    answers = await driver.cancel([stopped.id, finished.id], reason="no")
    answers += await driver.requeue(RequeueAsk((finished.id,)))
    answers += await driver.requeue(RequeueAsk((stopped.id,), from_step="nowhere"))
    assert not any(answer.done for answer in answers)
    assert await database.fetch(BYTES) == before


async def test_a_twin_that_commits_while_a_retry_waits_for_it_is_named_and_no_step_is_lost(
    driver: PostgresDriver, database: Any, pg_url: str, job: Any, ask: Any
) -> None:
    await driver.enqueue([job(idempotency_key="k")])
    (claimed,) = await driver.claim(ask(1))
    await record(driver, claimed, "one")
    await driver.settle([settlement(claimed, Outcome.DEAD, stop_reason=StopReason.TERMINAL, error="no")])
    other = await asyncpg.connect(pg_url)
    try:
        opened = other.transaction()
        await opened.start()
        (twin,) = await driver.enqueue([job(idempotency_key="k")], tx=other)
        retrying = asyncio.create_task(driver.requeue(RequeueAsk((claimed.id,), from_step="one")))
        await eventually(lambda: database.fetchval(WAITING), that="the retry waits for the twin's transaction")
        await opened.commit()
        (answer,) = await retrying
    finally:
        await other.close()
    assert (answer.done, answer.code, answer.meta["existing_id"]) == (False, "X_JOB_DUPLICATE", str(twin.id))
    assert [step.name for step in await driver.inspect.steps(claimed.run_id)] == ["one"]


async def test_a_twin_that_rolls_back_lets_the_retry_go_on(
    driver: PostgresDriver, database: Any, pg_url: str, job: Any, ask: Any
) -> None:
    stopped = await dead(driver, job, ask, idempotency_key="k")
    other = await asyncpg.connect(pg_url)
    try:
        opened = other.transaction()
        await opened.start()
        await driver.enqueue([job(idempotency_key="k")], tx=other)
        retrying = asyncio.create_task(driver.requeue(RequeueAsk((stopped.id,))))
        await eventually(lambda: database.fetchval(WAITING), that="the retry waits for the twin's transaction")
        await opened.rollback()
        (answer,) = await retrying
    finally:
        await other.close()
    assert answer.done


async def test_a_row_of_history_goes_back_once_when_two_retry_it(
    driver: PostgresDriver, database: Any, pg_url: str, job: Any
) -> None:
    (row,) = await driver.enqueue([job(idempotency_key="k", input='{"n":1.50}')])
    await driver.cancel([row.id])
    second = PostgresDriver(pg_url)
    await second.open()
    try:
        answers = await asyncio.gather(driver.requeue(RequeueAsk((row.id,))), second.requeue(RequeueAsk((row.id,))))
    finally:
        await second.close()
    assert sorted(answer.done for (answer,) in answers) == [False, True]
    assert await database.fetchval("select count(*) from x_jobs_all where id = $1", row.id) == 1
    assert await driver.inspect.input(row.id) == '{"n":1.50}'


async def test_acts_and_workers_on_the_same_rows_never_deadlock(pg_url: str, job: Any, ask: Any) -> None:
    drivers = [PostgresDriver(pg_url) for _ in range(4)]
    for driver in drivers:
        await driver.open()
    rows = await drivers[0].enqueue([job(idempotency_key=f"k{n}") for n in range(150)])
    ids = [row.id for row in rows]
    chance = random.Random(7)

    def some() -> tuple[Any, ...]:
        return tuple(chance.sample(ids, 60))

    async def retries(driver: PostgresDriver) -> None:
        for _ in range(12):
            await driver.requeue(RequeueAsk(some(), allow_done=True))

    async def cancels(driver: PostgresDriver) -> None:
        for _ in range(12):
            await driver.cancel(some())

    async def works(driver: PostgresDriver) -> None:
        for _ in range(12):
            claimed = await driver.claim(ask(50))
            chance.shuffle(claimed)
            outcomes = (Outcome.OK, Outcome.DEAD, Outcome.RETRIED)
            await driver.settle(
                [settlement(c, chance.choice(outcomes), stop_reason=StopReason.TERMINAL) for c in claimed]
            )

    try:
        await asyncio.gather(retries(drivers[0]), cancels(drivers[1]), works(drivers[2]), retries(drivers[3]))
        totals = (await drivers[0].inspect.stats()).totals
    finally:
        for driver in drivers:
            await driver.close()
    assert sum(count.value for count in totals.values()) == len(ids)


async def test_reads_wait_for_nobody_and_nobody_waits_for_them(
    driver: PostgresDriver, database: Any, pg_url: str, job: Any, ask: Any
) -> None:
    await dead(driver, job, ask)
    await driver.enqueue([job(idempotency_key=f"k{n}") for n in range(20)])
    inspector = Inspector(driver)
    (target,) = (await inspector.jobs("state:ready", limit=1)).rows
    writer, reader = await asyncpg.connect(pg_url), await asyncpg.connect(pg_url)
    try:
        async with writer.transaction(), reader.transaction():
            await reader.fetch("select * from x_jobs, x_jobs_done, x_workers")
            await writer.execute("update x_jobs set updated_at = now()")
            for read in (
                inspector.overview(),
                inspector.stats(),
                inspector.jobs(ANY, sort=Sort.DUE),
                inspector.job(target.id, with_input=True),
                inspector.why(target.id),
                inspector.causes(),
                inspector.leases(),
                inspector.workers(),
                inspector.health(),
                inspector.activity(),
                inspector.count("queue:default"),
                inspector.find(target.id.hex[-8:]),
            ):
                await asyncio.wait_for(read, 10)
                assert await database.fetchval(WAITING) == 0
            await asyncio.wait_for(driver.enqueue([job()]), 10)
    finally:
        await writer.close()
        await reader.close()


async def test_the_connection_that_reads_can_write_nothing(driver: PostgresDriver) -> None:
    for statement in ("create table t ()", "update x_jobs set name = name"):
        with pytest.raises(Exception, match="read-only transaction"):
            await driver._reads.fetch(statement)


async def test_a_read_that_takes_too_long_is_ended_by_the_server(driver: PostgresDriver) -> None:
    with pytest.raises(Exception, match="statement timeout"):
        await driver._reads.fetch("select pg_sleep(10)")
    assert await driver.inspect.count(parse_where("state:ready")) is not None


async def test_texts_that_try_to_break_out_of_a_statement_are_values(driver: PostgresDriver, job: Any) -> None:
    nasty = "a'; drop table x_jobs; -- %_\\ {schema} $1"
    await driver.enqueue([job(idempotency_key=nasty, tenant_id=nasty)])
    quoted = nasty.replace("\\", "\\\\")
    for text in (f'key:"{quoted}"', f'tenant:"{quoted}"', f'key:"{quoted[:9]}*"', f'queue:default key:"{quoted}"'):
        assert len((await driver.inspect.jobs(parse_where(text))).rows) == 1, text
    assert (await driver.inspect.jobs(parse_where('key:"a_*"'))).rows == []
    path = "queue:default input.a';drop.b:\"x'\""
    assert (await driver.inspect.jobs(parse_where(path))).rows == []
