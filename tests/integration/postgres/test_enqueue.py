from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from tests.support.servers import LOST
from ultijobs._queue.records import JobState, UniqueMode
from ultijobs._queue.telling import SignalKind
from ultijobs.errors import Invariant, PayloadInvalid
from ultijobs.postgres import PostgresDriver


async def test_one_of_many_racing_enqueues_of_a_key_inserts(pg_url, job):
    drivers = [PostgresDriver(pg_url) for _ in range(8)]
    await asyncio.gather(*(driver.open() for driver in drivers))
    answers = await asyncio.gather(
        *(driver.enqueue([job(idempotency_key="k", tenant_id="t")]) for driver in drivers for _ in range(5))
    )
    await asyncio.gather(*(driver.close() for driver in drivers))
    assert len({answer[0].id for answer in answers}) == 1
    assert sum(not answer[0].deduped for answer in answers) == 1


async def test_an_enqueue_survives_holders_that_come_and_go(driver, pg_url, job, ask):
    """While another connection claims and settles the holder again and again, no enqueue is told of a false outage."""
    other = PostgresDriver(pg_url)
    await other.open()
    answers = []

    async def finish_what_is_there() -> None:
        for _ in range(150):
            claimed = await other.claim(ask())
            await other.settle([settlement(each) for each in claimed])

    async def enqueue() -> None:
        for _ in range(100):
            answers.extend(await driver.enqueue([job(idempotency_key="same")]))

    await asyncio.gather(finish_what_is_there(), enqueue(), enqueue())
    await other.close()
    assert len(answers) == 200
    assert any(answer.deduped for answer in answers)


async def test_tenants_and_names_have_keys_of_their_own(driver, job):
    answers = await driver.enqueue(
        [
            job(idempotency_key="k"),
            job(idempotency_key="k", tenant_id="a"),
            job(idempotency_key="k", tenant_id="b"),
            job("other", idempotency_key="k"),
            job(idempotency_key="k", tenant_id="a"),
        ]
    )
    assert [answer.deduped for answer in answers] == [False, False, False, False, True]
    assert answers[4].id == answers[1].id


async def test_a_large_batch_dedupes_against_itself_and_what_is_there(driver, database, job):
    first = await driver.enqueue([job(idempotency_key=f"k{i}") for i in range(0, 3000, 2)])
    again = await driver.enqueue([job(idempotency_key=f"k{i}") for i in [*range(3000), 7, 8]])
    assert [answer.deduped for answer in again] == [i % 2 == 0 for i in range(3000)] + [True, True]
    assert again[0].id == first[0].id
    assert again[3000].id == again[7].id
    assert await database.fetchval("select count(*) from x_jobs") == 3000


async def test_a_large_batch_is_one_transaction(driver, database, job):
    await database.execute("alter table x_jobs add constraint no_poison check (idempotency_key <> 'z')")
    with pytest.raises(asyncpg.CheckViolationError):
        await driver.enqueue([job(idempotency_key=str(i)) for i in range(6000)] + [job(idempotency_key="z")])
    assert await database.fetchval("select count(*) from x_jobs") == 0
    assert (await driver.enqueue([job()]))[0].deduped is False


async def test_delays_are_by_the_clock_of_the_database(driver, database, job):
    a, b, c = await driver.enqueue(
        [
            job(delay=timedelta(minutes=5)),
            job(run_at=datetime(2100, 1, 1, tzinfo=UTC)),
            job(run_at=datetime(2000, 1, 1, tzinfo=UTC)),
        ]
    )
    assert [a.state, b.state, c.state] == [JobState.DELAYED, JobState.DELAYED, JobState.READY]
    rows = await database.fetch("select id, run_at - created_at as wait, run_at, due_at from x_jobs")
    by_id = {row["id"]: row for row in rows}
    assert by_id[a.id]["wait"] == timedelta(minutes=5)
    assert by_id[b.id]["run_at"] == datetime(2100, 1, 1, tzinfo=UTC)
    assert by_id[c.id]["wait"] == timedelta(0)
    assert all(row["run_at"] == row["due_at"] for row in rows)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1.0, "b": [true, null, "é😀"], "a": 2}', "null", '"plain"', "12345678901234567890.000000000000000001"],
)
async def test_an_input_comes_back_as_the_text_it_was(driver, job, ask, text):
    await driver.enqueue([job(input=text)])
    await driver.enqueue([job(input=text) for _ in range(100)])
    claimed = await driver.claim(ask(200))
    assert [each.input for each in claimed] == [text] * 101


# -- in a caller's transaction ---------------------------------------------------------------------------


async def test_a_rolled_back_transaction_leaves_nothing(driver, database, job, ask):
    transaction = database.transaction()
    await transaction.start()
    await driver.enqueue([job(idempotency_key="k")], tx=database)
    await transaction.rollback()
    assert await driver.claim(ask()) == []


async def test_a_committed_transaction_is_claimed_and_told(driver, database, job, ask):
    signals = []
    async with driver.subscribe(signals.append):
        async with database.transaction():
            [enqueued] = await driver.enqueue([job()], tx=database)
            assert await driver.claim(ask()) == []
        await eventually(lambda: signals)
    assert [each.id for each in await driver.claim(ask())] == [enqueued.id]
    assert {(signal.kind, signal.value) for signal in signals} == {(SignalKind.QUEUE, "default")}


async def test_a_savepoint_rolled_back_takes_its_jobs_alone(driver, database, job):
    async with database.transaction():
        [kept] = await driver.enqueue([job(idempotency_key="kept")], tx=database)
        savepoint = database.transaction()
        await savepoint.start()
        await driver.enqueue([job(idempotency_key="gone")], tx=database)
        await savepoint.rollback()
        again = await driver.enqueue([job(idempotency_key="kept"), job(idempotency_key="gone")], tx=database)
    assert [answer.deduped for answer in again] == [True, False]
    assert again[0].id == kept.id


async def test_a_backend_terminated_before_the_commit_leaves_no_row(driver, database, pg_url, job):
    caller = await asyncpg.connect(pg_url)
    transaction = caller.transaction()
    await transaction.start()
    await driver.enqueue([job()], tx=caller)
    await database.execute("select pg_terminate_backend($1)", caller.get_server_pid())
    with pytest.raises(LOST):
        await transaction.commit()
    caller.terminate()
    assert await database.fetchval("select count(*) from x_jobs") == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"input": '{"a":"\0"}'},
        {"name": "a\0b"},
        {"tenant_id": "\ud800"},
        {"idempotency_key": "k" * 3000},
        {"queue": "q" * 3000},
    ],
    ids=["nul-input", "nul-name", "surrogate", "long-key", "long-queue"],
)
async def test_a_refused_input_leaves_the_transaction_usable(driver, database, job, bad):
    async with database.transaction():
        await database.execute("create table business (id int)")
        with pytest.raises(PayloadInvalid):
            await driver.enqueue([job(), job(**bad)], tx=database)
        await database.execute("insert into business values (1)")
    assert await database.fetchval("select count(*) from business") == 1
    assert await database.fetchval("select count(*) from x_jobs") == 0


async def test_codecs_and_search_path_of_the_caller_make_no_difference(driver, database, pg_url, job):
    caller = await asyncpg.connect(pg_url)
    await caller.execute("create schema other; create table other.x_jobs (id int); set search_path = other")
    for kind in ("json", "jsonb"):
        await caller.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await caller.set_type_codec("uuid", encoder=lambda _: 1 / 0, decoder=lambda _: 1 / 0, schema="pg_catalog")
    await caller.set_type_codec(
        "timestamptz", encoder=lambda _: 1 / 0, decoder=lambda _: 1 / 0, schema="pg_catalog", format="text"
    )
    async with caller.transaction():
        [one] = await driver.enqueue([job(input='{"a": 1}', delay=timedelta(seconds=1))], tx=caller)
        many = await driver.enqueue([job(input='{"a": 1}') for _ in range(200)], tx=caller)
    await caller.close()
    assert len(many) == 200
    assert await database.fetchval("select input::text from x_jobs where id = $1", one.id) == '{"a": 1}'
    assert await database.fetchval("select count(distinct json_typeof(input)) from x_jobs") == 1


async def test_a_caller_with_an_older_snapshot_is_told_to_repeat_its_transaction(driver, database, job):
    """What holds the key cannot be seen in a snapshot from before it: the server's own error says so."""
    transaction = database.transaction(isolation="repeatable_read")
    await transaction.start()
    await database.fetchval("select count(*) from x_jobs")
    [holder] = await driver.enqueue([job(idempotency_key="k")])
    with pytest.raises(asyncpg.SerializationError):
        await driver.enqueue([job(idempotency_key="k")], tx=database)
    await transaction.rollback()
    async with database.transaction(isolation="repeatable_read"):
        [again] = await driver.enqueue([job(idempotency_key="k")], tx=database)
    assert (again.id, again.deduped) == (holder.id, True)


async def test_a_transaction_of_the_drivers_own_commits_or_vanishes(driver, database, job):
    async with driver.transaction() as tx:
        await driver.enqueue([job()], tx=tx)
    failing = driver.transaction()
    await driver.enqueue([job()], tx=await failing.__aenter__())
    assert await failing.__aexit__(ZeroDivisionError, ZeroDivisionError(), None) is False
    assert await database.fetchval("select count(*) from x_jobs") == 1


async def test_what_is_no_connection_is_refused_by_name(driver, job):
    with pytest.raises(Invariant, match=r"builtins\.str"):
        await driver.enqueue([job()], tx="session")


# -- unique ----------------------------------------------------------------------------------------------


async def test_a_rerun_waits_until_the_one_before_it_is_terminal(driver, job, ask):
    def enqueue():
        return driver.enqueue([job(idempotency_key="k", unique=UniqueMode.RERUN)])

    [first] = await enqueue()
    [running] = await driver.claim(ask())
    [second] = await enqueue()
    [third] = await enqueue()
    assert (second.deduped, third.deduped, third.id) == (False, True, second.id)
    assert await driver.claim(ask()) == []
    await driver.settle([settlement(running)])
    [next_one] = await driver.claim(ask())
    assert (running.id, next_one.id) == (first.id, second.id)


async def test_a_twin_left_behind_by_chance_is_freed_by_the_reaper(driver, database, job, ask):
    [enqueued] = await driver.enqueue([job()])
    await database.execute("update x_jobs set behind = gen_random_uuid()")
    assert await driver.claim(ask()) == []
    assert (await driver.attention()).lapsed
    await driver.reap([])
    assert not (await driver.attention()).lapsed
    assert [each.id for each in await driver.claim(ask())] == [enqueued.id]


async def test_bursts_of_enqueues_are_told_in_few_notifications_and_the_last_is_told(driver, job):
    signals = []
    async with driver.subscribe(signals.append):
        for _ in range(100):
            await driver.enqueue([job()])
        await eventually(lambda: signals)
        before = len(signals)
        assert before < 100
        await eventually(lambda: not driver._enqueuer._owed and driver._enqueuer._telling is None)
