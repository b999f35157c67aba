"""Workers whose PostgreSQL restarts, refuses writes, is locked, loses patience or has no connection left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.scenarios.conftest import LATE, Ground, calm, p95
from tests.scenarios.trade import one_of_many, waits_for_word
from tests.support.eventually import eventually
from tests.support.scenes import WorkerProcess
from tests.support.stage import Ask, quick
from ultijobs import App
from ultijobs.errors import DriverUnavailable

SLOTS = 8
CLIENTS = 10


class Clients:
    """They enqueue fifty jobs a second together, and repeat what was not acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[UUID] = set()
        self._stopping = False

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._enqueue(number))
            try:
                yield
            finally:
                self._stopping = True

    async def _enqueue(self, client: int) -> None:
        count = 0
        while not self._stopping:
            count += 1
            self.acknowledged.add(await self._until_acknowledged(f"{client}-{count}"))
            await asyncio.sleep(CLIENTS / 50)

    @staticmethod
    async def _until_acknowledged(key: str) -> UUID:
        while True:
            try:
                return (await one_of_many.enqueue(Ask(key=key, seconds=0.1))).id
            except DriverUnavailable:
                await asyncio.sleep(0.2)


@pytest.mark.timeout(240)
async def test_restarts_under_load_lose_no_acknowledged_job(ground: Ground, here: App[Any]) -> None:
    workers = [await ground.worker(name) for name in ("w1", "w2")]
    clients = Clients()
    async with clients.at_work():
        await asyncio.sleep(5)
        for _ in range(3):
            await asyncio.to_thread(ground.server.halt)
            await asyncio.sleep(2)
            await asyncio.to_thread(ground.server.start)
            await asyncio.sleep(5)
        await asyncio.sleep(5)
        late = [await ground.latency(f"late {number}") for number in range(20)]
    await ground.all_done(len(clients.acknowledged) + len(late))
    rows = await ground.fetch("select id from x_jobs_all where state = 'done'")
    assert clients.acknowledged <= {row["id"] for row in rows}
    assert sum(row["times"] > 1 for row in await ground.executions()) <= 3 * 2 * SLOTS
    assert p95(late) <= 0.5 + LATE
    calm(*workers)
    for worker in workers:
        outages = len(worker.lines("jobs.database.away"))
        assert 1 <= outages <= 3
        assert len(worker.lines("jobs.database.back")) == outages


@pytest.mark.timeout(180)
async def test_a_database_that_takes_no_writes_is_read_and_waited_for(ground: Ground, here: App[Any]) -> None:
    workers = [await ground.worker(name) for name in ("w1", "w2")]
    first = await quick.enqueue(Ask(key="first"))
    await ground.started(first.id)
    await ground.set("default_transaction_read_only", "on")
    try:
        until = time.monotonic() + 20
        await eventually(lambda: all(worker.lines("jobs.database.away") for worker in workers), within=20)
        with pytest.raises(DriverUnavailable, match="read-only"):
            await quick.enqueue(Ask(key="refused"))
        await every_reading_command_answers(ground, first.id, ground.url)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
    finally:
        await ground.set("default_transaction_read_only", None)
    again = time.monotonic()
    await ground.started(await enqueued("after"))
    assert time.monotonic() - again <= 2 + LATE
    await ground.all_done(2)
    await ground.executed_once()
    calm(*workers)


@pytest.mark.timeout(180)
async def test_a_hot_standby_is_read_and_served_once_it_is_promoted(ground: Ground, here: App[Any]) -> None:
    waiting = await quick.enqueue(Ask(key="waiting"))
    standby = await asyncio.to_thread(ground.server.standby)
    url = standby.url(ground.url.rpartition("/")[2])
    try:
        worker = await ground.worker("w1", url=url, ready=False)
        await worker.said("jobs.database.away")
        await every_reading_command_answers(ground, waiting.id, url)
        refused = ground.stage.spawn("publish", ["-m", "ultijobs_cli", "events", "publish", "x"], url)
        assert await refused.exit_code() == 4
        assert "takes no writes" in refused.text()
        assert await ground.stage.effects() == []
        calm(worker)
        promoted = await asyncpg.connect(url)
        assert await promoted.fetchval("select pg_promote()")
        await promoted.close()
        await ground.stage.effect("end")
        assert await worker.said("jobs.database.back")
        worker.terminate()
        assert await worker.exit_code() == 0
    finally:
        await asyncio.to_thread(standby.stop)


@pytest.mark.timeout(180)
async def test_a_locked_table_under_a_short_statement_timeout_costs_no_lease(ground: Ground, here: App[Any]) -> None:
    await ground.fetch("alter role postgres set statement_timeout = '500ms'")
    try:
        workers = [await ground.worker(name, lease="3s") for name in ("w1", "w2")]
        for number in range(8):
            await quick.enqueue(Ask(key=f"long {number}", seconds=4))
        await ground.stage.effect("start", 8)
        holder = await asyncpg.connect(ground.url, server_settings={"statement_timeout": "0"})
        async with holder.transaction():
            await holder.execute("lock table x_jobs in access exclusive mode")
            await asyncio.sleep(2)
        await holder.close()
        again = time.monotonic()
        await ground.started(await enqueued("after"))
        assert time.monotonic() - again <= 1 + LATE
        await ground.all_done(9)
    finally:
        await ground.fetch("alter role postgres reset statement_timeout")
    assert {row["attempt"] for row in await ground.fetch("select attempt from x_jobs_all")} == {1}
    await ground.executed_once()
    calm(*workers)
    assert not any(worker.lines("jobs.lease.lost") for worker in workers)


@pytest.mark.timeout(180)
async def test_no_connection_is_left_idle_in_a_transaction(ground: Ground, here: App[Any]) -> None:
    await ground.set("idle_in_transaction_session_timeout", "1s")
    try:
        worker = await ground.worker("w1")
        for number in range(6):
            await quick.enqueue(Ask(key=f"long {number}", seconds=10))
        for number in range(2):
            await waits_for_word.enqueue(Ask(key=f"wait {number}"))
        await ground.stage.effect("waits", 2)
        until = time.monotonic() + 12
        watch = await asyncpg.connect(ground.server.url())
        while time.monotonic() < until:
            idle = await watch.fetch(
                "select application_name from pg_stat_activity where state like 'idle in transaction%' "
                "and clock_timestamp() - state_change > interval '200 ms'"
            )
            assert idle == []
            await asyncio.sleep(0.1)
        await watch.close()
        for number in range(2):
            await here.publish("word.given", key=f"wait {number}")
        await ground.all_done(8)
    finally:
        await ground.set("idle_in_transaction_session_timeout", None)
    assert "idle-in-transaction" not in ground.server.said()
    calm(worker)


@pytest.mark.timeout(180)
async def test_workers_go_on_while_the_server_has_no_connection_left(ground: Ground, here: App[Any]) -> None:
    settled, watch = await ground.worker("settled"), await asyncpg.connect(ground.url)
    await ground.latency("first")
    hogs: list[asyncpg.Connection] = []
    try:
        await take_all(ground, hogs)
        newcomer = await ground.worker("newcomer", ready=False)
        until, count = time.monotonic() + 30, 0
        while time.monotonic() < until:
            await quick.enqueue(Ask(key=f"scarce {count}"))
            count += 1
            await asyncio.sleep(0.3)
        assert newcomer.lines("jobs.worker.started") == []
        done = "select count(*) from x_jobs_all where state = 'done'"
        await eventually(lambda: watch.fetchval(f"{done} having count(*) = {count + 1}"), within=10)
    finally:
        for hog in hogs:
            await hog.close()
        await watch.close()
    await newcomer.said("jobs.worker.started")
    calm(settled, newcomer)
    await ground.executed_once()


@pytest.mark.timeout(300)
async def test_a_listener_that_is_killed_twenty_times_comes_back_each_time(ground: Ground, here: App[Any]) -> None:
    worker: WorkerProcess = await ground.worker("w1", poll="2s")
    await ground.latency("first")
    at_once: list[float] = []
    later: list[float] = []
    for number in range(20):
        killed = await ground.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name = 'ultijobs-listen' and datname = current_database()"
        )
        assert killed
        at_once.append(await ground.latency(f"killed {number}"))
        await asyncio.sleep(5)
        later.append(await ground.latency(f"back {number}"))
    assert max(at_once) <= 2 + LATE
    assert p95(later) <= 0.15 + LATE
    calm(worker)


async def every_reading_command_answers(ground: Ground, job: UUID, url: str) -> None:
    for words in (["jobs", "ls"], ["jobs", "show", str(job)], ["tasks", "ls"], ["stats"], ["workers"]):
        command = ground.stage.spawn("-".join(words[:2]), ["-m", "ultijobs_cli", *words, "--json"], url)
        assert await command.exit_code() == 0, command.text()


async def take_all(ground: Ground, hogs: list[asyncpg.Connection]) -> None:
    """Every connection that the server still has to give."""
    try:
        while True:
            hogs.append(await asyncpg.connect(ground.url))
    except asyncpg.TooManyConnectionsError:
        assert hogs


async def enqueued(key: str) -> UUID:
    """The id of a quick job, as soon as the database takes it."""

    async def taken() -> list[UUID]:
        try:
            return [(await quick.enqueue(Ask(key=key))).id]
        except DriverUnavailable:
            return []

    return (await eventually(taken, within=20, every=0.05))[0]
