"""The proxy breaks what it is told to break, and only that."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.faults.proxy import Proxy
from tests.support.eventually import eventually
from tests.support.servers import LOST


@pytest.fixture
def proxy(pg_url: str) -> Iterator[Proxy]:
    with Proxy(pg_url) as proxy:
        yield proxy


@pytest.fixture
async def lease(proxy: Proxy) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(proxy, "lease")
    yield connection
    connection.terminate()


@pytest.fixture
async def worker(proxy: Proxy) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(proxy, "worker")
    yield connection
    connection.terminate()


async def connect(proxy: Proxy, app: str) -> asyncpg.Connection:
    return await asyncpg.connect(proxy.url, timeout=5, server_settings={"application_name": f"ultijobs-{app}"})


async def test_it_forwards_and_knows_who_is_who(proxy: Proxy, lease: asyncpg.Connection, worker: asyncpg.Connection):
    assert await lease.fetchval("select 1 + $1::int", 1) == 2
    assert (proxy.connections(), proxy.connections("ultijobs-lease"), proxy.connections("*-app")) == (2, 1, 0)


async def test_a_refusal_resets_what_is_open_and_what_comes(
    proxy: Proxy, lease: asyncpg.Connection, worker: asyncpg.Connection
):
    proxy.refuse("ultijobs-lease")
    with pytest.raises(LOST):
        await lease.fetchval("select 1")
    with pytest.raises(LOST):
        await connect(proxy, "lease")
    assert await worker.fetchval("select 1") == 1
    proxy.heal("ultijobs-lease")
    await (await connect(proxy, "lease")).close()


async def test_a_reset_happens_once(proxy: Proxy, worker: asyncpg.Connection):
    assert proxy.reset("ultijobs-worker") == 1
    with pytest.raises(LOST):
        await worker.fetchval("select 1")
    await (await connect(proxy, "worker")).close()


async def test_answers_are_delayed_not_requests(proxy: Proxy, pg_url: str, worker: asyncpg.Connection):
    await worker.execute("create table t as select 1 as n")
    proxy.delay(1.0, "ultijobs-worker")
    beside = await asyncpg.connect(pg_url)
    began = time.monotonic()
    late = asyncio.create_task(worker.execute("insert into t values (2)"))
    await eventually(lambda: beside.fetchval("select count(*) = 2 from t"))
    await late
    assert time.monotonic() - began >= 1.0
    await beside.close()


async def test_a_stall_holds_back_until_it_is_healed(proxy: Proxy, worker: asyncpg.Connection):
    proxy.stall("ultijobs-worker")
    answer = asyncio.create_task(worker.fetchval("select 7"))
    done, _ = await asyncio.wait({answer}, timeout=0.2)
    assert not done
    proxy.heal()
    assert await asyncio.wait_for(answer, 10) == 7


async def test_a_swallowed_answer_never_comes_although_the_server_did_it(
    proxy: Proxy, pg_url: str, worker: asyncpg.Connection
):
    await worker.execute("create table t (n int)")
    proxy.swallow("ultijobs-worker")
    with pytest.raises(TimeoutError):
        await worker.execute("insert into t values (1)", timeout=0.3)
    beside = await asyncpg.connect(pg_url)
    await eventually(lambda: beside.fetchval("select count(*) = 1 from t"))
    await beside.close()


async def test_a_trip_breaks_the_one_request_that_holds_the_words(proxy: Proxy, worker: asyncpg.Connection):
    await worker.execute("create table t (n text)")
    proxy.trip(b"poison", "ultijobs-worker")
    await worker.execute("insert into t values ($1)", "harmless")
    with pytest.raises(LOST):
        await worker.execute("insert into t values ($1)", "poison")
    assert proxy.tripped("ultijobs-worker") == 1
    again = await connect(proxy, "worker")
    assert await again.fetchval("select count(*) from t") == 1
    await again.execute("insert into t values ($1)", "poison")
    await again.close()
