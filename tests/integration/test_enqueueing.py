"""Enqueueing on a real Postgres: one row per key however many ask, and the caller's transaction decides."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from tests.faults.proxy import Proxy
from tests.support.servers import LOST
from ultijobs import App, job
from ultijobs.errors import DriverUnavailable, JobDuplicate, PayloadInvalid, SchemaOutdated, UltijobsError

ROOT = Path(__file__).parents[2]


class Mail(BaseModel):
    to: str


@job(Mail, idempotency_key=lambda i: i.to, tenant="none")
async def send(input: Mail): ...


@pytest.fixture
async def app(pg_url):
    async with App(jobs=[send], driver=pg_url) as app:
        yield app


@pytest.fixture
async def connection(pg_url):
    connection = await asyncpg.connect(pg_url)
    yield connection
    await connection.close(timeout=5)


async def stored_keys(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch("select idempotency_key from x_jobs order by 1")]
    finally:
        await connection.close()


# -- one key, many askers --------------------------------------------------------------------------------
RACER = """
import asyncio, json, random, sys
sys.path.insert(0, {root!r})
from tests.integration.test_enqueueing import Mail, send
from ultijobs import App

async def main():
    async with App(jobs=[send], driver={url!r}) as app:
        print("ready", flush=True)
        sys.stdin.readline()
        keys = {keys!r} * {times}
        random.shuffle(keys)
        half = len(keys) // 2
        rows, many = await asyncio.gather(
            asyncio.gather(*(app.enqueue(send, Mail(to=key)) for key in keys[:half])),
            app.enqueue_many(send, [Mail(to=key) for key in keys[half:]]),
        )
        print(json.dumps([[str(row.id), row.deduped] for row in [*rows, *many]]), flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize(("keys", "times"), [(["one"], 10), ([str(n) for n in range(20)], 3)])
def test_processes_that_enqueue_the_same_keys_at_once_make_one_row_of_each(pg_url, keys, times):
    code = RACER.format(root=str(ROOT), url=pg_url, keys=keys, times=times)
    racers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        answers = [answer for racer in racers for answer in json.loads(racer.communicate(timeout=60)[0])]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert len(answers) == 5 * len(keys) * times
    assert len({found for found, _ in answers}) == len(keys)
    assert [deduped for _, deduped in answers].count(False) == len(keys)
    assert asyncio.run(stored_keys(pg_url)) == sorted(keys)


# -- the caller's transaction ----------------------------------------------------------------------------
async def test_a_row_of_a_transaction_is_seen_after_its_commit_under_the_id_that_was_returned(app, connection, pg_url):
    transaction = connection.transaction()
    await transaction.start()
    row = await send.enqueue(Mail(to="a"), tx=connection)
    assert await stored_keys(pg_url) == []
    await transaction.commit()
    assert await stored_keys(pg_url) == ["a"]
    assert await connection.fetchval("select id from x_jobs_all") == row.id


async def test_a_rollback_takes_the_row_along(app, connection, pg_url):
    transaction = connection.transaction()
    await transaction.start()
    await send.enqueue(Mail(to="a"), tx=connection)
    await send.enqueue_many([Mail(to="b"), Mail(to="c")], tx=connection)
    await transaction.rollback()
    assert await stored_keys(pg_url) == []


async def test_a_rolled_back_savepoint_takes_only_its_own_row_along(app, connection, pg_url):
    async with connection.transaction():
        await send.enqueue(Mail(to="kept"), tx=connection)
        savepoint = connection.transaction()
        await savepoint.start()
        await send.enqueue(Mail(to="gone"), tx=connection)
        await savepoint.rollback()
    assert await stored_keys(pg_url) == ["kept"]


async def test_a_refused_input_leaves_the_transaction_usable(app, connection, pg_url):
    async with connection.transaction():
        for bad in ({"to": "x\x00"}, {"to": "\ud800"}):
            with pytest.raises(PayloadInvalid):
                await send.enqueue(bad, tx=connection)
        await send.enqueue(Mail(to="a"), tx=connection)
    assert await stored_keys(pg_url) == ["a"]


async def test_a_conflict_leaves_the_transaction_usable_and_stores_none_of_its_call(app, connection, pg_url):
    await send.enqueue(Mail(to="held"))
    async with connection.transaction():
        with pytest.raises(JobDuplicate):
            await send.enqueue_many([Mail(to="a"), Mail(to="held")], tx=connection, on_conflict="error")
        with pytest.raises(JobDuplicate):
            await send.enqueue(Mail(to="held"), tx=connection, on_conflict="error")
        await send.enqueue(Mail(to="b"), tx=connection)
    assert await stored_keys(pg_url) == ["b", "held"]


async def test_a_bound_transaction_is_joined_without_passing_it(app, connection, pg_url):
    async with connection.transaction(), app.transaction(connection):
        await send.enqueue(Mail(to="inside"))
        await send.enqueue(Mail(to="outside"), tx=False)
        assert await stored_keys(pg_url) == ["outside"]
    assert await stored_keys(pg_url) == ["inside", "outside"]


async def test_the_caller_s_own_codecs_do_not_matter(app, connection, pg_url):
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    async with connection.transaction():
        row = await send.enqueue(Mail(to="a"), tx=connection)
    stored = await connection.fetchval("select input::text from x_jobs where id = $1", row.id)
    assert stored == '{"to":"a"}'


async def test_a_caller_whose_connection_dies_before_the_commit_gets_an_error_and_no_row(app, connection, pg_url):
    transaction = connection.transaction()
    await transaction.start()
    await send.enqueue(Mail(to="a"), tx=connection)
    pid = connection.get_server_pid()
    killer = await asyncpg.connect(pg_url)
    await killer.execute("select pg_terminate_backend($1)", pid)
    await killer.close()
    with pytest.raises(LOST):
        await transaction.commit()
    assert await stored_keys(pg_url) == []
    assert not (await send.enqueue(Mail(to="a"))).deduped


async def test_a_caller_who_never_hears_of_the_commit_enqueues_again_and_meets_the_row(app, pg_url):
    with Proxy(pg_url) as proxy:
        connection = await asyncpg.connect(proxy.url, server_settings={"application_name": "shop"})
        transaction = connection.transaction()
        await transaction.start()
        row = await send.enqueue(Mail(to="a"), tx=connection)
        proxy.trip(b"COMMIT", "shop", swallow=True)
        with pytest.raises(LOST):
            await transaction.commit()
        connection.terminate()
    again = await send.enqueue(Mail(to="a"))
    assert (again.deduped, again.id) == (True, row.id)
    assert await stored_keys(pg_url) == ["a"]


async def test_an_enqueue_whose_connection_breaks_is_an_error_and_the_next_one_works(pg_url):
    with Proxy(pg_url) as proxy:
        async with App(jobs=[send], driver=proxy.url) as app:
            await app.enqueue(send, Mail(to="before"))
            proxy.refuse("ultijobs-app")
            proxy.reset("ultijobs-app")
            with pytest.raises(DriverUnavailable):
                await app.enqueue(send, Mail(to="during"))
            proxy.heal()
            assert not (await app.enqueue(send, Mail(to="after"))).deduped
    assert "after" in await stored_keys(pg_url)


# -- a store that cannot be used -------------------------------------------------------------------------
async def test_an_application_on_a_database_without_tables_does_not_open(empty_pg_url):
    with pytest.raises(SchemaOutdated) as caught:
        await App(jobs=[send], driver=empty_pg_url).open()
    assert "migrate" in caught.value.fix


def test_a_sync_enqueue_on_a_database_that_is_away_is_an_error_each_time():
    app = App(jobs=[send], driver="postgresql://postgres@127.0.0.1:1/nowhere")
    for _ in range(2):
        with pytest.raises(DriverUnavailable):
            app.enqueue_sync(send, Mail(to="a"))


# -- sync programs ---------------------------------------------------------------------------------------
SYNC_PROGRAM = """
import os, sys
sys.path.insert(0, {root!r})
from tests.integration.test_enqueueing import Mail, send
from ultijobs import App

app = App(jobs=[send], driver={url!r})
send.enqueue_sync(Mail(to="parent"))
child = os.fork()
if child == 0:
    send.enqueue_sync(Mail(to="child"))
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
send.enqueue_sync(Mail(to="after"))
"""


def test_a_sync_program_enqueues_before_and_after_a_fork_and_ends_cleanly(pg_url):
    code = SYNC_PROGRAM.format(root=str(ROOT), url=pg_url)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert asyncio.run(stored_keys(pg_url)) == ["after", "child", "parent"]


def test_sync_enqueues_of_many_are_one_transaction(pg_url):
    app = App(jobs=[send], driver=pg_url)
    with app:
        given: list[Any] = [Mail(to=str(n)) for n in range(2_000)]
        rows = send.enqueue_many_sync(given)
        assert [row.deduped for row in rows] == [False] * 2_000
        with pytest.raises(UltijobsError):
            send.enqueue_many_sync([Mail(to="x"), {"to": 3}])
        with pytest.raises(JobDuplicate):
            send.enqueue_many_sync([Mail(to="x"), Mail(to="7")], on_conflict="error")
    assert asyncio.run(stored_keys(pg_url)) == sorted(str(n) for n in range(2_000))
