from __future__ import annotations

import asyncio
import contextlib
import socket
from datetime import timedelta
from typing import Self

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._queue.claims import Beat, BeatAnswer, Verdict
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs._queue.telling import SignalKind
from ultijobs.errors import DriverUnavailable, Invariant, SchemaOutdated
from ultijobs.postgres import PostgresDriver, listen

TERMINATE = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where application_name like 'ultijobs-%' and datname = current_database()
"""
ROLES = "select application_name from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


class Relay:
    """A TCP relay in front of the server that can fall silent: what arrives is swallowed, nothing is closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    def silence(self) -> None:
        self._open.clear()

    def speak(self) -> None:
        self._open.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        for source, sink in ((reader, up_writer), (up_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if not self._open.is_set():
                    continue
                sink.write(data)
                await sink.drain()
        sink.close()


@pytest.fixture
async def relayed(pg, pg_url):
    """A relay and the URL of the test's database through it."""
    async with Relay(pg.port) as relay:
        yield relay, pg_url.replace(f":{pg.port}/", f":{relay.port}/")


async def test_every_role_comes_back_after_its_backend_was_terminated(driver, database, job, ask):
    signals = []
    link = driver.lease_link()
    await link.open()
    async with driver.subscribe(signals.append):
        for _ in range(2):
            await driver.enqueue([job()])
            [claimed] = await driver.claim(ask())
            [answer] = await link.renew([Beat(claimed.id, claimed.lease_no)], timedelta(seconds=30))
            assert answer is BeatAnswer.HELD
            step = StepWrite(
                claimed.id, claimed.run_id, claimed.lease_no, "s", StepKind.RUN, StepStatus.COMPLETED, 0, output="1"
            )
            assert (await driver.record_steps([step]))[0].held
            assert await driver.settle([settlement(claimed)]) == [Verdict.SETTLED]
            await driver.reap([])
            roles = {row[0] for row in await database.fetch(ROLES)}
            assert {"ultijobs-worker", "ultijobs-lease", "ultijobs-listen"} <= roles
            await eventually(lambda: any(signal.kind is SignalKind.QUEUE for signal in signals))
            assert await database.fetchval(TERMINATE) >= 5
            await eventually(lambda: [s.kind for s in signals].count(SignalKind.BACK) > 0, that="listening again")
            signals.clear()
    await link.close()


async def test_a_refused_connection_is_a_driver_that_is_away_without_a_password(job):
    driver = PostgresDriver("postgresql://me:hunter2@127.0.0.1:1/db?sslpassword=hunter3")
    with pytest.raises(DriverUnavailable) as away:
        await driver.open()
    assert "hunter" not in str(away.value) + repr(driver._place.dsn) + driver.url + str(away.value.meta)
    assert "127.0.0.1:1/db" in away.value.cause
    await driver.close()


async def test_a_wrong_database_or_role_is_told_as_such(pg):
    for url, word in (
        (pg.url("nowhere"), "nowhere"),
        (pg.url().replace("postgres@", "nobody@"), "nobody"),
    ):
        driver = PostgresDriver(url)
        with pytest.raises(DriverUnavailable, match=word):
            await driver.open()
        await driver.close()


async def test_opening_checks_the_schema_and_leaves_no_connection_behind_where_it_does_not_fit(empty_pg_url):
    driver = PostgresDriver(empty_pg_url)
    with pytest.raises(SchemaOutdated, match="version 0"):
        await driver.open()
    looking = await asyncpg.connect(empty_pg_url)
    try:
        await eventually(lambda: looking.fetchval(f"select not exists ({ROLES})"), that="no connection is left")
    finally:
        await looking.close()


async def test_a_closed_driver_says_so_and_can_be_opened_again(driver, job):
    await driver.close()
    with pytest.raises(Invariant, match="closed"):
        await driver.enqueue([job()])
    await driver.open()
    assert len(await driver.enqueue([job()])) == 1


async def test_a_lock_that_lasts_is_a_bounded_wait(driver, database, job, monkeypatch):
    await driver.enqueue([job()])
    monkeypatch.setattr(driver._claims, "_limit", 0.3)
    async with database.transaction():
        await database.execute("lock table x_jobs in access exclusive mode")
        with pytest.raises(DriverUnavailable):
            await driver.reap([])
    assert await driver.reap([]) == []


async def test_a_cancelled_call_costs_its_connection_and_not_the_next_answer(driver, database, job):
    async with database.transaction():
        await database.execute("lock table x_jobs in access exclusive mode")
        waiting = asyncio.create_task(driver.enqueue([job(idempotency_key="cancelled")]))
        await eventually(lambda: database.fetchval("select count(*) from pg_locks where not granted"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    for at in range(5):
        [answer] = await driver.enqueue([job(idempotency_key=str(at))])
        assert not answer.deduped


async def test_a_half_open_listener_is_noticed_and_replaced(relayed, database, job, monkeypatch):
    monkeypatch.setattr(listen, "_PROBE_EVERY", 0.2)
    monkeypatch.setattr(listen, "_PROBE_WITHIN", 0.5)
    relay, url = relayed
    driver = PostgresDriver(url)
    await driver.open()
    kinds = []
    async with driver.subscribe(lambda signal: kinds.append(signal.kind)):
        relay.silence()
        await eventually(lambda: kinds == [SignalKind.LOST])
        relay.speak()
        await eventually(lambda: kinds == [SignalKind.LOST, SignalKind.BACK])
        await database.execute("select pg_notify('ultijobs:public', 'q:default')")
        await eventually(lambda: kinds[-1] is SignalKind.QUEUE)
    await driver.close()


async def test_a_silent_database_is_away_within_the_time_limit(relayed, job, monkeypatch):
    relay, url = relayed
    driver = PostgresDriver(url)
    await driver.open()
    await driver.enqueue([job()])
    monkeypatch.setattr(driver._enqueues, "_limit", -1.2)
    relay.silence()
    with pytest.raises(DriverUnavailable):
        await driver._enqueues.fetch("select 1")
    relay.speak()
    await driver.close()


async def test_a_pooler_gets_no_settings_and_no_listener(pg_url, database, job, ask):
    driver = PostgresDriver(pg_url + "?pgbouncer=1")
    await driver.open("worker")
    kinds = []
    async with driver.subscribe(lambda signal: kinds.append(signal.kind)):
        await driver.enqueue([job() for _ in range(100)])
        claimed = await driver.claim(ask(50))
        assert await driver.settle([settlement(each) for each in claimed]) == [Verdict.SETTLED] * 50
        assert kinds == [SignalKind.LOST]
        async with driver._claims.single() as connection:
            assert await connection.fetchval("show plan_cache_mode") == "auto"
            assert await connection.fetchval("select count(*) from pg_prepared_statements where name <> ''") == 0
    await driver.close()


async def test_hot_connections_plan_without_parameters_and_bound_their_statements(driver):
    async with driver._claims.hold() as connection:
        assert await connection.fetchval("show plan_cache_mode") == "force_generic_plan"
        assert await connection.fetchval("show jit") == "off"
        assert await connection.fetchval("show statement_timeout") == "5s"


async def test_plans_made_early_are_dropped(driver, ask, monkeypatch):
    await driver.claim(ask())
    held = driver._claims._idle[0]
    made_at = held.replan_at
    held.replan_at = 0.0
    await driver.claim(ask())
    assert held.replan_at > made_at


async def test_a_database_that_refuses_connections_is_tried_with_growing_pauses(pg_url, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        driver = PostgresDriver(f"postgresql://postgres@127.0.0.1:{closed.getsockname()[1]}/x")
        pauses = []
        monkeypatch.setattr("ultijobs.postgres.links.asyncio.sleep", lambda pause: _noted(pauses, pause))
        for _ in range(6):
            with pytest.raises(DriverUnavailable):
                await driver.open()
    assert len(pauses) == 5
    assert pauses[-1] > pauses[0]
    assert max(pauses) <= 3.0


async def _noted(pauses: list[float], pause: float) -> None:
    pauses.append(pause)


async def test_connections_are_few_and_named(driver, database, job, ask):
    await driver.enqueue([job()])
    await driver.claim(ask())
    rows = await database.fetch(ROLES)
    assert {row[0] for row in rows} == {"ultijobs-worker"}
    assert len(rows) <= 4


async def test_raw_connection_errors_do_not_pass(driver, database, job):
    """Whatever the moment at which a backend dies, callers see one kind of error or an answer."""

    async def kill() -> None:
        for _ in range(20):
            with contextlib.suppress(asyncpg.PostgresError):
                await database.fetchval(TERMINATE)
            await asyncio.sleep(0.01)

    async def enqueue() -> int:
        landed = 0
        for _ in range(60):
            with contextlib.suppress(DriverUnavailable):
                await driver.enqueue([job()])
                landed += 1
        return landed

    landed, *_ = await asyncio.gather(enqueue(), kill())
    assert landed > 0
    assert await database.fetchval("select count(*) from x_jobs") >= landed
