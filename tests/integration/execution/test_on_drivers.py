"""Handlers run by a real worker on each driver: branches, threads, stops, changed code, what they do to the process."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from tests.support.eventually import eventually
from ultijobs import App, Context, JobHandle, JobState, RetryPolicy, Step, SyncStep, Terminal, Worker, job
from ultijobs._queue.records import RequeueAsk
from ultijobs.inspection import Inspector
from ultijobs.inspection.models import JobDetail
from ultijobs.memory import MemoryDriver
from ultijobs.postgres import PostgresDriver

ENDED = {JobState.DONE, JobState.DEAD, JobState.FAILED, JobState.CANCELLED}


class Ask(BaseModel):
    key: str = "k"


def declared(fn: Callable[..., Any], **options: Any) -> JobHandle[Ask]:
    given: dict[str, Any] = {"retry": RetryPolicy(attempts=2, delay="50ms", jitter=False), "name": "demo", **options}
    return job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", **given)(fn)


@pytest.fixture(params=["memory", "postgres"])
def driver(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryDriver()
    return PostgresDriver(request.getfixturevalue("pg_url"))


@contextlib.asynccontextmanager
async def working(app: App[Any]) -> AsyncIterator[Worker]:
    worker = Worker(app, poll="50ms", grace="1s")
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


async def ended(app: App[Any], id: Any, *states: JobState) -> JobDetail:
    inspector = Inspector(app.driver)

    async def there() -> JobDetail | None:
        detail = await inspector.job(id)
        return detail if detail.row.state in (states or ENDED) else None

    found = await eventually(there, that=f"{states or ENDED}")
    assert found is not None
    return found


async def run(driver: Any, fn: Callable[..., Any], **options: Any) -> JobDetail:
    handle = declared(fn, **options)
    app = App(jobs=[handle], driver=driver)
    async with app:
        enqueued = await handle.enqueue(Ask())
        async with working(app):
            return await ended(app, enqueued.id)


async def test_branches_that_sleep_and_branches_that_work_all_get_there(driver: Any):
    ran: list[str] = []

    async def branch(step: Step, name: str, naps: list[str]) -> None:
        for number, nap in enumerate(naps):
            await step.run(f"{name}{number}", asyncio.to_thread, ran.append, f"{name}{number}")
            await step.sleep(f"nap {name}{number}", nap)

    async def handler(step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(branch(step, "a", ["100ms", "100ms"]))
            group.create_task(branch(step, "b", ["250ms"]))
            group.create_task(branch(step, "c", []))
            group.create_task(step.run("blocking", lambda: time.sleep(0.05) or ran.append("blocking")))

    detail = await run(driver, handler)
    assert (detail.row.state, detail.row.attempt) == (JobState.DONE, 1)
    assert sorted(ran) == ["a0", "a1", "b0", "blocking"]


async def test_plain_handlers_sleep_and_replay_like_others(driver: Any):
    ran: list[str] = []

    def handler(step: SyncStep, ctx: Context[Any]) -> None:
        step.run("before", ran.append, "before")
        step.sleep("100ms")
        step.run("after", ran.append, "after")
        if ctx.attempt == 1:
            raise ConnectionError("once")

    detail = await run(driver, handler)
    assert (detail.row.state, detail.row.attempt) == (JobState.DONE, 2)
    assert ran == ["before", "after"]


async def test_a_run_whose_code_lost_a_recorded_step_stops_as_code_changed(driver: Any):
    bodies: list[Callable[[Step], Any]] = []

    async def old(step: Step) -> None:
        await step.run("a", lambda: 1)
        await step.run("b", lambda: 1)
        await step.sleep("nap", "100ms")

    async def new(step: Step) -> None:
        bodies.pop()
        await step.run("a", lambda: 1)
        await step.sleep("nap", "100ms")

    bodies += [new, new, old]

    async def handler(step: Step) -> None:
        await (bodies.pop() if bodies[-1] is old else bodies[-1])(step)

    detail = await run(driver, handler)
    assert (detail.row.state, detail.row.stop_reason) == (JobState.DEAD, "code-changed")
    assert detail.row.error_code == "X_RUN_CODE_CHANGED"
    assert "'b'" in str(detail.row.last_error)


HOSTILE = ["\x00", "\ud800", "x" * 100_000, "\x1b[2J" + "\u202e", "quote ' \" \\ % $1 {} {0}"]


@pytest.mark.parametrize("text", HOSTILE, ids=["nul", "surrogate", "long", "terminal", "quotes"])
async def test_whatever_an_error_says_is_stored(driver: Any, text: str):
    async def handler(step: Step) -> None:
        def fails() -> None:
            raise ValueError(text)

        await step.run("fails", fails)

    detail = await run(driver, handler)
    assert (detail.row.state, detail.row.attempt) == (JobState.DEAD, 2)
    assert detail.row.stop_reason == "attempts-exhausted"
    assert str(detail.row.last_error).startswith("ValueError: ")
    assert len(str(detail.row.last_error).encode()) <= 10_000
    (step,) = detail.steps
    assert (step.status, step.tries) == ("failed", 2)


async def test_what_handlers_do_to_the_process_leaves_the_worker_at_work(driver: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    ended_tasks: list[str] = []

    async def forgotten() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended_tasks.append("forgotten")

    async def handler(input: Ask, step: Step) -> None:
        if input.key == "forgets":
            asyncio.create_task(forgotten())  # noqa: RUF006 - what is tested
            await asyncio.sleep(0)
        elif input.key == "closes the executor":
            await asyncio.get_running_loop().shutdown_default_executor()
        elif input.key == "moves":
            os.environ["TZ"] = "Pacific/Auckland"
            time.tzset()
        elif input.key == "forks":
            child = os.fork()
            if child:
                await step.run("wait", lambda: list(os.waitpid(child, 0)))
        await step.run("step", lambda: 1)
        await step.sleep("100ms")

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    try:
        async with app, working(app):
            for key in ("forgets", "closes the executor", "moves", "forks", "plain"):
                enqueued = await handle.enqueue(Ask(key=key))
                detail = await ended(app, enqueued.id)
                assert (key, detail.row.state, detail.row.attempt) == (key, JobState.DONE, 1), detail.row.last_error
    finally:
        monkeypatch.undo()
        time.tzset()
    # Once for the claim before the sleep, once for the one after it.
    assert ended_tasks == ["forgotten", "forgotten"]


async def test_a_stuck_thread_does_not_keep_a_worker_from_stopping(driver: Any):
    begun, end = threading.Event(), threading.Event()

    def handler() -> None:
        begun.set()
        end.wait()

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app:
        enqueued = await handle.enqueue(Ask())
        worker = Worker(app, poll="50ms", grace="100ms")
        task = asyncio.create_task(worker.run())
        await eventually(begun.is_set)
        worker.stop()
        await asyncio.wait_for(task, 10)
        detail = await ended(app, enqueued.id, JobState.READY)
        assert detail.row.attempt == 0
    end.set()


async def test_a_record_of_a_newer_release_is_handed_back_and_not_claimed_again(pg_url: str):
    ran: list[str] = []

    async def handler(input: Ask, step: Step) -> None:
        ran.append(input.key)
        if input.key == "sleeps":
            await step.sleep("nap", "1h")

    handle = declared(handler)
    app = App(jobs=[handle], driver=pg_url)
    async with app:
        enqueued = await handle.enqueue(Ask(key="sleeps"))
        async with working(app):
            await ended(app, enqueued.id, JobState.SUSPENDED)
        connection = await asyncpg.connect(pg_url)
        await connection.execute("update x_jobs set run_at = now()")
        await connection.execute("update x_job_steps set status = 'compensating'")
        ran.clear()
        async with working(app):
            detail = await ended(app, enqueued.id, JobState.DELAYED)
            assert detail.row.attempt == 0
            await connection.execute("update x_jobs set run_at = now() - interval '1 minute'")
            later = await handle.enqueue(Ask(key="later"))
            await ended(app, later.id)
            claims = await connection.fetchval("select claims from x_jobs")
        await connection.close()
    assert ran == ["later"]
    assert claims == 2


async def test_a_step_that_is_in_the_table_before_the_first_claim_counts(pg_url: str) -> None:
    ran: list[str] = []

    async def handler(input: Ask, step: Step) -> None:
        await step.run("pay", lambda: ran.append(input.key))

    handle = declared(handler)
    app = App(jobs=[handle], driver=pg_url)
    connection = await asyncpg.connect(pg_url)
    async with app:
        paid, foreign = [await handle.enqueue(Ask(key=key)) for key in ("paid", "foreign")]
        for enqueued, status in ((paid, "completed"), (foreign, "compensating")):
            await connection.execute(
                "insert into x_job_steps (run_id, name, status, output, position, lease_no)"
                " values ($1, 'pay', $2, 'null', 0, 0)",
                enqueued.run_id,
                status,
            )
        async with working(app):
            await ended(app, paid.id)
            detail = await ended(app, foreign.id, JobState.DELAYED)
    await connection.close()
    assert detail.row.attempt == 0
    assert ran == []


@pytest.mark.parametrize(("error", "executions"), [(RuntimeError("again"), 2), (Terminal("never"), 1)])
async def test_without_dead_letters_a_job_ends_failed_after_its_attempts_and_frees_its_key(
    driver: Any, error: Exception, executions: int
):
    ran: list[int] = []

    async def handler(ctx: Context[Any]) -> None:
        ran.append(ctx.attempt)
        if len(ran) <= executions:
            raise error

    handle = declared(handler, retry=RetryPolicy(attempts=2, delay="50ms", jitter=False, dead_letter=False))
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        first = await handle.enqueue(Ask())
        assert (await ended(app, first.id)).row.state == JobState.FAILED
        assert ran == list(range(1, executions + 1))
        other = await handle.enqueue(Ask())
        assert (other.deduped, (await ended(app, other.id)).row.state) == (False, JobState.DONE)
        await driver.requeue(RequeueAsk((first.id,)))
        assert (await ended(app, first.id, JobState.DONE)).row.attempt == 1
    assert ran[executions:] == [1, 1]


async def test_a_retry_from_a_step_repeats_that_and_all_later_ones_and_nothing_before(driver: Any):
    ran: list[str] = []
    fixed = asyncio.Event()

    async def last() -> None:
        ran.append("d")
        if not fixed.is_set():
            raise Terminal("not yet")

    async def handler(step: Step) -> None:
        for name in "abc":
            await step.run(name, asyncio.to_thread, ran.append, name)
        await step.run("d", last)

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        assert (await ended(app, enqueued.id)).row.state == JobState.DEAD
        fixed.set()
        await driver.requeue(RequeueAsk((enqueued.id,), from_step="b"))
        done = await ended(app, enqueued.id, JobState.DONE)
    assert ran == ["a", "b", "c", "d", "b", "c", "d"]
    assert (done.row.attempt, done.row.last_error) == (1, None)
    assert [attempt.error_code for attempt in done.attempts] == ["X_TERMINAL"]
