"""The relay publishes each committed row once, in order, whatever happens to it, to the queue or to one of the rows."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.integration.outbox.conftest import Mail, send, wait
from tests.support.eventually import eventually
from ultijobs import App, Relay
from ultijobs._metrics import series
from ultijobs._outbox import passing
from ultijobs._retry import RetryPolicy
from ultijobs._service import gauges
from ultijobs._worker.worker import Worker
from ultijobs.errors import DriverUnavailable, Invariant

ROOT = Path(__file__).parents[3]


async def stage(app: App, connection: asyncpg.Connection, *keys: str) -> list[Any]:
    async with connection.transaction():
        return [await app.enqueue(send, Mail(to=key), tx=connection) for key in keys]


async def fates(outbox) -> list[str]:
    return [row.state for row in (await outbox.rows(limit=1_000)).rows]


async def all_published(outbox) -> bool:
    return set(await fates(outbox)) == {"published"}


@pytest.fixture
def impatient(monkeypatch):
    """Tries of a refused row follow each other at once."""
    monkeypatch.setattr(passing, "PAUSES", RetryPolicy(attempts=8, backoff="fixed", delay="1ms", jitter=False))


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "ultijobs")

    def found(event: str) -> list[dict[str, Any]]:
        return [record.fields for record in caplog.records if getattr(record, "event", "") == event]

    return found


def refuse(*bad: str) -> Any:
    def before(keys: list[str]) -> None:
        if set(bad) & set(keys):
            raise ValueError(f"refused {keys}")

    return before


# -- order -----------------------------------------------------------------------------------------------
async def test_a_transaction_that_commits_late_is_published_too(app, connection, app_url, outbox, jobs, relaying):
    relaying()
    slow = await asyncpg.connect(app_url)
    transaction = slow.transaction()
    await transaction.start()
    await app.enqueue(send, Mail(to="slow"), tx=slow)
    await stage(app, connection, "quick")
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["quick"]
    await transaction.commit()
    await slow.close()
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["quick", "slow"]


async def test_rows_of_one_transaction_are_never_swapped_by_four_relays_and_a_failing_queue(
    app, connection, outbox, queue, relaying, impatient, monkeypatch
):
    monkeypatch.setattr(passing, "TRIES", 1_000)
    seen: dict[str, list[int]] = {}
    draw = random.Random(7)

    def before(keys: list[str]) -> None:
        if draw.random() < 0.1:
            raise ValueError("refused")

    def after(keys: list[str]) -> None:
        for key in keys:
            transaction, _, number = key.partition("-")
            seen.setdefault(transaction, []).append(int(number))

    queue.before, queue.after = before, after
    for transaction in range(20):
        await stage(app, connection, *(f"{transaction}-{number}" for number in range(10)))
    for _ in range(4):
        relaying(batch=7)
    await eventually(lambda: all_published(outbox), within=30)
    assert len(seen) == 20
    for numbers in seen.values():
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts)


async def test_jobs_and_events_of_a_transaction_are_published_in_their_order_in_few_statements(
    app, connection, outbox, queue, relaying
):
    sent: list[str] = []
    queue.before = sent.extend
    queue.events_before = lambda keys: sent.append(",".join(keys))
    for number in range(2):
        async with connection.transaction():
            await app.enqueue(send, Mail(to=f"{number}-a"), tx=connection)
            await app.publish("paid", key=f"{number}-b", tx=connection)
            await app.publish("paid", key=f"{number}-c", tx=connection)
            await app.enqueue(send, Mail(to=f"{number}-d"), tx=connection)
    relaying()
    await eventually(lambda: all_published(outbox))
    assert sent == ["0-a", "1-a", "0-b,0-c,1-b,1-c", "0-d", "1-d"]


async def test_a_staged_event_reaches_the_run_that_waits_for_it(app, connection, outbox, relaying):
    answer = await app.enqueue(wait, Mail(to="o-1"))
    worker = Worker(app, name="w", poll="50ms")
    running = asyncio.create_task(worker.run())
    await eventually(lambda: _state(app, answer.id, "suspended"))
    async with connection.transaction():
        await app.publish("paid", 1, key="o-1", tx=connection)
    await eventually(lambda: _state(app, answer.id, "done"))  # the worker's own relay
    worker.stop()
    await running
    assert await all_published(outbox)


async def _state(app: App, id: Any, state: str) -> bool:
    return (await app.driver.inspect.job(id)).state == state


# -- once ------------------------------------------------------------------------------------------------
KILLED = """
import asyncio, os, signal, sys
sys.path.insert(0, {root!r})
from tests.integration.outbox.conftest import Faulty, send
from ultijobs import App, Relay

def die(keys):
    if "40" in keys:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    queue = Faulty({queue!r})
    queue.after = die
    await Relay(App(jobs=[send], driver=queue, outbox={app!r}), batch=1, interval="1ms", relay_id="killed").run()

asyncio.run(main())
"""


async def test_a_relay_that_is_killed_between_publish_and_mark_makes_no_second_job(
    app, connection, outbox, jobs, relaying, pg_url, app_url
):
    rows = await stage(app, connection, *map(str, range(100)))
    code = KILLED.format(root=str(ROOT), queue=pg_url, app=app_url)
    dying = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], timeout=60, check=False)
    assert dying.returncode == -signal.SIGKILL
    assert sorted(await jobs(), key=int) == [str(number) for number in range(41)]
    # The job of row 40 ends before anybody marks its row.
    worker = Worker(app, name="w")
    await worker.run_until_idle()
    assert (await app.driver.inspect.job(rows[40].id)).state == "done"
    assert (await fates(outbox)).count("staged") == 60
    relaying(claim_lease="1s")
    await eventually(lambda: all_published(outbox), within=10)
    await worker_again(app)
    states = [(await app.driver.inspect.job(row.id)) for row in rows]
    assert [(job.state, job.attempt) for job in states] == [("done", 1)] * 100
    assert len(await jobs()) == 100


async def worker_again(app: App) -> None:
    await Worker(app, name="w2").run_until_idle()


async def test_a_relay_that_lost_its_claim_says_so_and_the_job_is_one(
    app, connection, outbox, jobs, queue, relaying, lines
):
    held = asyncio.Event()
    first = True

    async def before(keys: list[str]) -> None:
        nonlocal first
        if first:
            first = False
            await held.wait()

    queue.before = before
    await stage(app, connection, "a")
    relaying(claim_lease="200ms")
    await eventually(lambda: not first)
    relaying(claim_lease="200ms")
    await eventually(lambda: all_published(outbox))
    held.set()
    await eventually(lambda: lines("jobs.outbox.claim-lost"))
    assert await jobs() == ["a"]


async def test_a_key_that_is_held_by_a_live_job_is_published_as_that_job(app, connection, outbox, jobs, relaying):
    held = await send.enqueue(Mail(to="a"))
    (staged,) = await stage(app, connection, "a")
    relaying()
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["a"]
    (row,) = (await outbox.rows()).rows
    assert (row.id, row.job_id) == (staged.id, held.id)


async def test_an_event_whose_publishing_was_not_noted_is_stored_once(app, connection, outbox, queue, relaying):
    async def lose(keys: list[str]) -> None:
        queue.events_after = lambda _: None
        raise DriverUnavailable("the answer was lost")

    queue.events_after = lose
    async with connection.transaction():
        await app.publish("paid", key="o-1", tx=connection)
    relaying()
    await eventually(lambda: all_published(outbox))
    assert [row.key for row in (await app.driver.events.page()).rows] == ["o-1"]


# -- failures --------------------------------------------------------------------------------------------
async def test_a_row_that_is_refused_eight_times_is_set_aside_with_the_later_rows_of_its_transaction_alone(
    app, connection, outbox, jobs, queue, relaying, impatient, lines
):
    tries: list[list[str]] = []
    queue.before = lambda keys: (tries.append(keys), refuse("bad")(keys))
    rows = await stage(app, connection, "fine", "bad", "later")
    await stage(app, connection, "other")
    relaying()
    await eventually(lambda: lines("jobs.outbox.set-aside"))
    await eventually(lambda: _settled(outbox))
    assert await jobs() == ["fine", "other"]
    by_id = {row.id: row for row in (await outbox.rows()).rows}
    assert (by_id[rows[1].id].state, by_id[rows[1].id].attempts) == ("set-aside", 8)
    assert by_id[rows[1].id].last_error == "ValueError: refused ['bad']"
    assert (by_id[rows[2].id].state, by_id[rows[2].id].held_by) == ("set-aside", rows[1].id)
    assert tries.count(["bad"]) == 8
    (line,) = lines("jobs.outbox.set-aside")
    assert line["outbox_id"] == rows[1].id
    queue.before = lambda _: None
    await outbox.retry([rows[1].id])
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["fine", "other", "bad", "later"]


async def test_an_event_that_is_refused_holds_up_the_later_rows_of_its_transaction_alone(
    app, connection, outbox, jobs, queue, relaying, impatient, lines
):
    queue.events_before = refuse("bad")
    async with connection.transaction():
        await app.enqueue(send, Mail(to="fine"), tx=connection)
        await app.publish("paid", key="bad", tx=connection)
        await app.enqueue(send, Mail(to="later"), tx=connection)
    async with connection.transaction():
        await app.publish("paid", key="good", tx=connection)
        await app.enqueue(send, Mail(to="other"), tx=connection)
    relaying()
    await eventually(lambda: lines("jobs.outbox.set-aside"))
    await eventually(lambda: _settled(outbox))
    assert await jobs() == ["fine", "other"]
    assert [row.key for row in (await app.driver.events.page()).rows] == ["good"]
    assert sorted(await fates(outbox)) == ["published"] * 3 + ["set-aside"] * 2


async def _settled(outbox) -> bool:
    return "staged" not in await fates(outbox)


def test_tries_are_a_second_apart_and_doubling_to_thirty():
    pauses = [passing.PAUSES.delay_for(tries) for tries in range(1, passing.TRIES)]
    assert pauses == [timedelta(seconds=seconds) for seconds in (1, 2, 4, 8, 16, 30, 30)]


async def test_a_queue_that_is_away_costs_no_row_a_try(app, connection, outbox, jobs, queue, relaying, lines):
    def away(keys: list[str]) -> None:
        raise DriverUnavailable("the queue is away")

    queue.before = away
    await stage(app, connection, "a", "b")
    relaying()
    await eventually(lambda: lines("jobs.database.away"))
    rows = (await outbox.rows()).rows
    assert [(row.state, row.attempts, row.claimed_at) for row in rows] == [("staged", 0, None)] * 2
    queue.before = lambda _: None
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["a", "b"]
    await eventually(lambda: lines("jobs.database.back"))
    assert len(lines("jobs.database.away")) == 1


async def test_what_is_published_refused_and_set_aside_is_told(
    app, connection, outbox, queue, impatient, monkeypatch, lines
):
    monkeypatch.setattr(gauges, "EVERY", 0.05)
    queue.before = refuse("bad")
    await stage(app, connection, "a")
    await stage(app, connection, "bad")
    relay = Relay(app, interval="20ms", metrics_port=0, metrics_host="127.0.0.1")
    running = asyncio.create_task(relay.run())
    wanted = {series.OUTBOX_PUBLISHED: 1, series.OUTBOX_REFUSED: 8, series.OUTBOX_SET_ASIDE: 1, series.OUTBOX_STAGED: 0}

    def told() -> bool:
        found = app.metrics.read()
        return {each: found[each].get(()) for each in wanted} == wanted

    await eventually(told)
    assert app.metrics.read()[series.QUEUE_DEPTH] == {("default",): 1}
    assert relay.health().ok
    relay.stop()
    assert relay.health().reasons == ("draining",)
    await asyncio.wait_for(running, 10)
    assert app.metrics.read()[series.OUTBOX_SET_ASIDE] == {}


async def test_a_relay_whose_connections_are_cut_again_and_again_publishes_each_row_once(
    app, connection, outbox, jobs, relaying, pg_url
):
    relaying(batch=5, claim_lease="1s")
    killer = await asyncpg.connect(pg_url)
    for number in range(10):
        await stage(app, connection, *(f"{number}-{part}" for part in range(10)))
        await killer.execute(CUT)
    await killer.close()
    await eventually(lambda: all_published(outbox), within=20)
    keys = await jobs()
    assert len(keys) == len(set(keys)) == 100


CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ultijobs-relay'"


# -- stopping --------------------------------------------------------------------------------------------
async def test_a_stop_waits_for_the_pass_and_its_mark(app, connection, outbox, queue, relaying):
    publishing = asyncio.Event()
    slow = asyncio.Event()

    async def before(keys: list[str]) -> None:
        publishing.set()
        await slow.wait()

    queue.before = before
    await stage(app, connection, "a", "b")
    relay = Relay(app, interval="20ms")
    running = asyncio.create_task(relay.work(relay._stop))
    await publishing.wait()
    relay.stop()
    assert not (await asyncio.wait({running}, timeout=0.1))[0]
    slow.set()
    await running
    assert await all_published(outbox)


async def test_a_stop_at_once_gives_back_what_is_claimed(app, connection, outbox, queue, jobs, relaying):
    publishing = asyncio.Event()

    async def before(keys: list[str]) -> None:
        publishing.set()
        await asyncio.Event().wait()

    queue.before = before
    await stage(app, connection, "a")
    relay = Relay(app, interval="20ms", claim_lease="1h")
    running = asyncio.create_task(relay.work(relay._stop))
    await publishing.wait()
    relay.stop(now=True)
    await running
    queue.before = lambda _: None
    relaying(claim_lease="1h")
    await eventually(lambda: all_published(outbox))
    assert await jobs() == ["a"]


async def test_an_application_without_an_outbox_has_nothing_to_relay(pg_url):
    with pytest.raises(Invariant, match="no outbox"):
        await Relay(App(jobs=[send], driver=pg_url)).run()


async def test_published_rows_are_deleted_after_their_retention(app, connection, outbox, relaying):
    await stage(app, connection, "a", "b")
    relaying()
    await eventually(lambda: all_published(outbox))
    await connection.execute("update x_outbox set published_at = now() - interval '25 h'")
    relaying()
    await eventually(lambda: _empty(outbox))


async def _empty(outbox) -> bool:
    return (await outbox.rows()).rows == []
