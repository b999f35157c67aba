"""The cockpit on a real queue, on each driver: what is there is shown, what is pressed is done and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from tests.support.servers import Server
from tests.tui.driving import QUICK, Driver
from ultijobs._connect import driver_for
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk, Settlement
from ultijobs._queue.driver import Driver as Queue
from ultijobs._queue.outbox import Unsent
from ultijobs._queue.records import Enqueued, NewJob, Outcome, StopReason
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs._queue.telling import CatalogEntry, WorkerBeat, WorkerOrder
from ultijobs.inspection import ANY, Inspector
from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Settings
from ultijobs_tui.keymap import DEFAULT
from ultijobs_tui.running import TaskRunner
from ultijobs_tui.screens.ask import AskDialog
from ultijobs_tui.source import LiveSource

TABS = {tab.keys[0]: tab.id.removeprefix("tab.") for tab in DEFAULT.tabs()}
STRIPE = "TimeoutError: POST /v1/charges timed out after 10s"


@pytest.fixture(params=["memory", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory:" if request.param == "memory" else request.getfixturevalue("pg_url")


@asynccontextmanager
async def on_queue(
    url: str, settings: Settings | None = None, tasks: Callable[[Queue], TaskRunner] | None = None
) -> AsyncGenerator[tuple[Driver, Queue]]:
    queue = driver_for(url)
    await queue.open("tui")
    try:
        runner = tasks(queue) if tasks else None
        source = LiveSource(Inspector(queue, actor="ops@bastion", source="tui"), tasks=runner)
        app = Cockpit(source, settings, budget=QUICK)
        async with app.run_test(size=(120, 36)) as pilot:
            driver = Driver(app, pilot, source)
            await driver.until(lambda: app.last_frame is not None)
            yield driver, queue
    finally:
        await queue.close()


async def dead_jobs(queue: Queue, count: int) -> list[UUID]:
    """Jobs of one cause: a stored step, a failed one, all attempts used."""
    jobs = [
        NewJob(new_id(), "charge_invoice", "{}", queue="billing", tenant_id=f"t{n}", max_attempts=1)
        for n in range(count)
    ]
    await queue.enqueue(jobs)
    ask = ClaimAsk("w-03", {"billing": count}, ("charge_invoice",), count, timedelta(seconds=30))
    claims = await queue.claim(ask)
    for claim in claims:
        write = StepWrite(claim.id, claim.run_id, claim.lease_no, "load", StepKind.RUN, StepStatus.COMPLETED, 1, "1")
        failed = StepWrite(
            claim.id, claim.run_id, claim.lease_no, "charge", StepKind.RUN, StepStatus.FAILED, 2, error=STRIPE
        )
        await queue.record_steps([write, failed])
    await queue.settle(
        [
            Settlement(
                c.id, c.run_id, c.lease_no, Outcome.DEAD, 1, "w-03", "billing",
                stop_reason=StopReason.ATTEMPTS_EXHAUSTED, error_code="builtins.TimeoutError",
                fingerprint="7f3a91c2d4e5", error=STRIPE, traceback=f"Traceback:\n{STRIPE}",
            )
            for c in claims
        ]
    )  # fmt: skip
    return [claim.id for claim in claims]


async def test_a_cause_is_found_opened_retried_from_the_screen_and_taken_back(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        ids = await dead_jobs(queue, 3)
        before = {row.id: row for row in (await queue.inspect.jobs(ANY)).rows}
        await driver.sees("dead letters", "7f3a TimeoutError")
        await driver.press("r")
        dialog = await driver.dialog()
        assert dialog.plan.matched.value == 3
        await driver.press("tab", "enter")
        await driver.sees("retried 3", "ctrl+z undo")
        page = await queue.inspect.jobs(ANY)
        assert {row.id for row in page.rows if row.state == "ready"} == set(ids)
        [entry] = await queue.inspect.activity()
        assert (entry.actor, entry.source, entry.action, entry.done) == ("ops@bastion", "tui", "retry", 3)
        [claimed] = await queue.claim(ClaimAsk("w-03", {"billing": 1}, ("charge_invoice",), 1, timedelta(seconds=30)))
        await driver.press("ctrl+z")
        await driver.sees("undone: 2", f"job {claimed.id} was claimed since")
        rows = [row for row in (await queue.inspect.jobs(ANY)).rows if row.id != claimed.id]
        assert [row for row in rows if row != replace(before[row.id], updated_at=row.updated_at)] == []
        await driver.press("0")
        await driver.sees(f"act:{entry.id}", "✓ 2, 1 refused")


async def test_a_run_shows_its_steps_and_its_attempt_and_is_retried_from_a_step(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        [job] = await dead_jobs(queue, 1)
        await driver.press("5")
        await driver.sees("jobs of 7f3a", job.hex[-8:])
        await driver.press("tab", "enter")
        await driver.sees("✓ stored", "✗ failed", "w-03", "keeps load · runs again charge")
        await driver.press("g", "r")
        dialog = await driver.dialog()
        assert dialog.plan.options.from_step == "load"
        await driver.press("tab", "enter")
        await driver.sees("ready, attempt 0/1 · waits for no worker")
        assert (await queue.inspect.steps((await queue.inspect.job(job)).run_id)) == []


async def test_a_queue_is_paused_with_a_reason_and_resumed(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        await queue.enqueue([NewJob(new_id(), "charge_invoice", "{}", queue="billing")])
        await driver.press("2")
        await driver.sees("billing", "NO WORKER")
        await driver.press("p")
        dialog = await driver.dialog()
        dialog.query_one("#reason").focus()
        await driver.press(*"down", "tab", "tab", "tab", "enter")
        await driver.sees("PAUSED", 'by ops@bastion "down"')
        [row] = [q for q in await queue.inspect.queues() if q.queue == "billing"]
        assert (row.state, row.paused_by, row.pause_reason) == ("paused", "ops@bastion", "down")
        await driver.press("u")
        await driver.sees("resumed queue billing")
        [row] = [q for q in await queue.inspect.queues() if q.queue == "billing"]
        assert row.state != "paused"


async def test_a_waiting_job_is_asked_why_and_cancelled(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        job = new_id()
        await queue.enqueue([NewJob(job, "send_fax", "{}", queue="legacy")])
        await driver.press("3")
        await driver.sees("send_fax", "no worker")
        await driver.press("h")
        await driver.sees("waits for  no-worker", "ultijobs worker --queues legacy")
        await driver.press("escape", "X")
        await driver.sees("cancelled 1", "ctrl+z undo")
        assert (await queue.inspect.job(job)).state == "cancelled"


def beat(**values: object) -> WorkerBeat:
    base = WorkerBeat(
        instance=new_id(), worker_id="w-03", host="node-1", pid=77, version="0.1.0", code_version="9f31c0a",
        environment=None, queues=("billing",), names=("charge_invoice",), concurrency=4, state="running",
        free_slots=3, running=1, loop_lag_ms=2, rss_bytes=4_096, claimed_ago_ms=10, settled_ago_ms=5, counters={},
    )  # fmt: skip
    return replace(base, **values)


async def test_a_worker_is_seen_drained_and_let_claim_again(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        living = beat()
        await queue.beat(living)
        await driver.press("6")
        await driver.sees("w-03", "healthy", "1/4")
        await driver.press("D")
        (await driver.dialog()).query_one("#apply").press()
        await driver.sees("draining worker w-03")
        assert await queue.beat(replace(living, state="draining")) is WorkerOrder.DRAIN
        await driver.sees("DRAINING")
        await driver.press("u")
        await driver.sees("resumed worker w-03")
        assert await queue.beat(living) is WorkerOrder.NONE
        assert [row.action for row in await queue.inspect.activity()] == ["resume-worker", "drain-worker"]


async def test_what_the_relay_set_aside_is_staged_again(url: str) -> None:
    async with on_queue(url) as (driver, queue):
        async with queue.transaction() as tx:
            await queue.outbox.stage([NewJob(new_id(), "charge_invoice", "{}", queue="billing")], tx=tx)
        [claimed] = await queue.outbox.claim("relay-1", limit=10, lease=timedelta(seconds=30))
        await queue.outbox.fail([Unsent(claimed.job.id, claimed.claim_no, "no queue is called biling", None)])
        await driver.press("9")
        await driver.sees("1 set aside", "no queue is called biling")
        await driver.press("r")
        (await driver.dialog()).query_one("#apply").press()
        await driver.sees("staged again 1")
        assert [row.state for row in (await queue.outbox.rows()).rows] == ["staged"]
        [entry] = await queue.inspect.activity()
        assert (entry.action, entry.done, entry.source) == ("outbox-retry", 1, "tui")


async def test_a_task_is_run_by_hand_and_recorded(url: str) -> None:
    class Runner:
        def __init__(self, queue: Queue) -> None:
            self.queue = queue

        async def foresee(self, task: str) -> dict[str, int]:
            return {"billing": 1}

        async def enqueue(self, task: str) -> list[Enqueued]:
            return await self.queue.enqueue([NewJob(new_id(), task, "{}", queue="billing")])

        async def close(self) -> None: ...

    async with on_queue(url, tasks=Runner) as (driver, queue):
        said = {"cron": "0 6 * * *", "tz": "UTC", "catch_up": "one", "max_catch_up": 1}
        await queue.publish_catalog([CatalogEntry("task", "nightly", None, said)])
        await driver.press("8")
        await driver.sees("nightly", "0 6 * * *", "never armed")
        await driver.press("r")
        (await driver.dialog()).query_one("#apply").press()
        await driver.sees("enqueued 1")
        assert [row.name for row in (await queue.inspect.jobs(ANY)).rows] == ["nightly"]
        [entry] = await queue.inspect.activity()
        assert (entry.action, entry.target, entry.done) == ("run-task", "task:nightly", 1)


async def test_a_queue_is_moved_to_another_database(pg_url: str, pg: Server) -> None:
    there = pg.create()
    async with on_queue(pg_url) as (driver, queue):
        jobs = [NewJob(new_id(), "charge_invoice", "{}", queue="billing") for _ in range(2)]
        await queue.enqueue(jobs)
        await driver.press("2")
        await driver.sees("billing")
        await driver.press("D")
        await driver.until(lambda: isinstance(driver.app.screen, AskDialog))
        driver.app.screen.query_one("#answer").value = there.replace("postgres@", "postgres:hunter2@")
        await driver.press("enter")
        dialog = await driver.dialog()
        await driver.sees("2 jobs", "ultijobs jobs drain --queue billing --to")
        assert "hunter2" not in driver.text
        await driver.press("2")
        dialog.query_one("#apply").press()
        await driver.sees("moved 2")
        [row] = [q for q in await queue.inspect.queues() if q.queue == "billing"]
        assert row.state == "paused"
    other = driver_for(there)
    await other.open("tui")
    assert {row.id for row in (await other.inspect.jobs(ANY)).rows} == {job.id for job in jobs}
    await other.close()
    pg.drop(there)


@pytest.mark.parametrize("key", TABS)
async def test_a_refresh_costs_at_most_six_statements(pg_url: str, key: str) -> None:
    async with on_queue(pg_url) as (driver, queue):
        await dead_jobs(queue, 3)
        await driver.sees("7f3a")
        await driver.press(key)
        await driver.until(lambda: TABS[key] == driver.app.screen.VIEW)
        statements = 0
        me = asyncio.current_task()

        async def counted(self, *args, real=asyncpg.Connection.fetch, **kw):
            nonlocal statements
            statements += asyncio.current_task() is me  # a refresh of the cockpit's own may be under way beside it
            return await real(self, *args, **kw)

        source, needs = driver.app.source, driver.app.screen.needs()
        driver.app.link.frozen = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncpg.Connection, "fetch", counted)
            frame = await source.fetch(needs)
        assert not frame.failures
        assert 0 < statements <= 6


async def test_a_server_that_cuts_every_connection_is_outlived(pg_url: str) -> None:
    async with on_queue(pg_url) as (driver, queue):
        await dead_jobs(queue, 1)
        await driver.sees("7f3a", "● LIVE")
        admin = await asyncpg.connect(pg_url)
        for _ in range(3):
            await admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        await admin.close()
        asked = driver.app.poller.fetches
        await driver.until(lambda: driver.app.poller.fetches > asked + 2)
        await driver.sees("● LIVE", "7f3a")


async def test_a_query_that_hangs_does_not_hold_the_cockpit(pg_url: str) -> None:
    """The tables are locked: the data ages, the keys still work, leaving is at once."""
    async with on_queue(pg_url) as (driver, queue):
        await dead_jobs(queue, 1)
        await driver.sees("7f3a")
        blocker = await asyncpg.connect(pg_url)
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("lock table x_jobs in access exclusive mode")
        asked = driver.app.poller.fetches
        await driver.until(lambda: driver.app.poller.fetches > asked)
        await driver.press("question_mark")
        await driver.sees("the list")
        await driver.press("escape")
        await driver.press("q")
        await driver.until(lambda: not driver.app.is_running)
        await transaction.rollback()
        await blocker.close()
