"""What handlers do to the process they run in: forgotten tasks, forks, executors, threads that never end."""

import asyncio
import contextlib
import contextvars
import json
import logging
import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from tests.support.attempts import Bench
from tests.support.eventually import eventually
from ultijobs._execution.ending import Ending
from ultijobs._log import JsonLines
from ultijobs._queue.records import Outcome
from ultijobs._steps.context import current
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs._steps.threads import Threads
from ultijobs.errors import Aborted, Invariant


async def test_forgotten_tasks_end_before_the_attempt_is_settled():
    ended: list[str] = []

    async def forgotten(name: str, deeper: int) -> None:
        inner = asyncio.create_task(forgotten(name + "i", deeper - 1)) if deeper else None
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)
            del inner

    async def handler() -> None:
        asyncio.create_task(forgotten("a", 2))  # noqa: RUF006 - what is tested
        asyncio.get_running_loop().create_task(forgotten("b", 0))
        for _ in range(5):
            await asyncio.sleep(0)

    bench = Bench(handler)
    settlement = await bench.run()
    assert settlement is not None
    assert settlement.outcome is Outcome.OK
    assert sorted(ended) == ["a", "ai", "aii", "b"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_forgotten_step_writes_nothing_after_the_handler_has_returned():
    begun = asyncio.Event()

    async def slow() -> None:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def handler(step: Step) -> None:
        asyncio.create_task(step.run("forgotten", slow))  # noqa: RUF006 - what is tested
        await begun.wait()

    bench = Bench(handler)
    settlement = await bench.run()
    assert settlement is not None
    assert settlement.outcome is Outcome.OK
    assert bench.steps.writes == []


async def test_a_forgotten_task_that_ignores_its_cancellation_holds_nobody_for_ever(caplog: pytest.LogCaptureFixture):
    end = asyncio.Event()

    async def stubborn() -> None:
        while not end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await end.wait()

    async def handler() -> None:
        asyncio.create_task(stubborn())  # noqa: RUF006 - what is tested
        await asyncio.sleep(0)

    bench = Bench(handler, grace=timedelta(milliseconds=50))
    with caplog.at_level(logging.WARNING):
        settlement = await bench.run()
    end.set()
    assert settlement is not None
    assert settlement.outcome is Outcome.OK
    assert "jobs.children.abandoned" in [record.__dict__["event"] for record in caplog.records]


async def test_tasks_of_one_attempt_are_not_those_of_another():
    ended: list[str] = []
    gate = asyncio.Event()

    async def child(name: str) -> None:
        try:
            await gate.wait()
            ended.append(f"{name} done")
        except asyncio.CancelledError:
            ended.append(f"{name} cancelled")
            raise

    async def short() -> None:
        asyncio.create_task(child("short"))  # noqa: RUF006 - what is tested
        await asyncio.sleep(0)

    async def long() -> None:
        await asyncio.create_task(child("long"))

    other = Bench(long)
    with other.started() as task:
        await Bench(short).run()
        gate.set()
        await task
    assert ended == ["short cancelled", "long done"]


async def test_the_loops_own_executor_may_be_closed_by_a_handler():
    async def closing() -> None:
        await asyncio.get_running_loop().shutdown_default_executor()

    def plain(step: SyncStep) -> None:
        assert step.run("a", lambda: 1) == 1

    async def stepping(step: Step) -> None:
        assert await step.run("a", lambda: 1) == 1

    for handler in (closing, plain, stepping):
        settlement = await Bench(handler).run()
        assert settlement is not None
        assert settlement.outcome is Outcome.OK


FORKING = """
import asyncio, os, sys
from tests.support.attempts import Bench

async def in_the_body(step):
    if os.fork() == 0:
        return
    await step.run("a", lambda: 1)

async def raising(step):
    if os.fork() == 0:
        raise RuntimeError("in the child")
    await step.run("a", lambda: 1)

async def between_steps(step):
    child = os.fork() == 0
    await step.run("a", lambda: 1)

def plain(step):
    os.fork()
    step.run("a", lambda: 1)

async def in_a_step(step):
    async def fork():
        os.fork()
    await step.run("a", fork)

async def main():
    for handler in (in_the_body, raising, between_steps, plain, in_a_step):
        settlement = await Bench(handler).run()
        print(handler.__name__, settlement.outcome.value, flush=True)

asyncio.run(main())
"""


def test_only_the_parent_of_a_fork_settles():
    # Its own process: a child that came out of the handler would run this suite a second time.
    done = subprocess.run(
        [sys.executable, "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        word for name in ("in_the_body", "raising", "between_steps", "plain", "in_a_step") for word in (name, "ok")
    ]


async def test_current_is_known_in_tasks_threads_and_steps_and_nowhere_else():
    seen: list[Any] = []

    def deep() -> None:
        seen.append(current().attempt)

    async def handler(step: Step, ctx: Any) -> None:
        assert current() is ctx
        await asyncio.create_task(asyncio.to_thread(deep))
        await step.run("deep", deep)
        with pytest.raises(Invariant):
            _ = ctx.step

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.outcome is Outcome.OK
    assert seen == [1, 1]
    with pytest.raises(Invariant):
        current()


async def test_services_come_from_the_host_and_the_context_function_may_add_to_them():
    async def context(services: dict[str, int], ctx: Any) -> dict[str, int]:
        return {**services, "attempt": ctx.attempt}

    seen: list[Any] = []

    async def handler(ctx: Any) -> None:
        seen.append(ctx.services)

    await Bench(handler, services={"db": 1}, context=context).run()
    assert seen == [{"db": 1, "attempt": 1}]


async def test_a_context_function_that_fails_is_an_ordinary_failure():
    def context(services: Any, ctx: Any) -> Any:
        raise ConnectionError("no database for you")

    async def handler() -> None:
        raise AssertionError

    bench = Bench(handler, attempts=2, context=context)
    assert await bench.run_out() == [Outcome.RETRIED, Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert last.error == "ConnectionError: no database for you"


async def test_progress_goes_out_with_the_renewal_the_last_value_wins_and_nothing_raises():
    hostile: list[Any] = [(float("nan"),), (10**400,), ("x",), (None,), (1, object())]

    async def handler(ctx: Any) -> None:
        ctx.progress(1, 10)
        ctx.progress(2, 10, "half\x00way" + "y" * 5_000)
        for values in hostile:
            ctx.progress(*values)

    bench = Bench(handler)
    await bench.run()
    beat = bench.attempt.beat(0.0)
    assert beat is not None
    assert beat.progress is not None
    assert (beat.progress.done, beat.progress.total) == (2, 10)
    assert beat.progress.message is not None
    assert beat.progress.message.startswith("half\\x00way")
    assert len(beat.progress.message.encode()) <= 500


async def test_the_jobs_log_carries_its_ids(caplog: pytest.LogCaptureFixture):
    async def handler(ctx: Any) -> None:
        ctx.log.info("hello %s", "there")

    bench = Bench(handler)
    with caplog.at_level(logging.INFO):
        await bench.run()
    (line,) = caplog.records
    assert line.getMessage() == "hello there"
    assert line.__dict__["fields"]["job_id"] == bench.job.id


async def test_what_the_jobs_log_is_given_is_in_its_line_and_never_in_place_of_its_ids(
    caplog: pytest.LogCaptureFixture,
):
    async def handler(ctx: Any) -> None:
        given = {"order": 7, "name": "impostor", "job_id": "none", "level": "x"}
        ctx.log.info("sold", extra=given)

    bench = Bench(handler)
    with caplog.at_level(logging.INFO):
        await bench.run()
    read = json.loads(JsonLines().format(caplog.records[0]))
    assert (read["event"], read["level"], read["order"]) == ("jobs.handler", "info", 7)
    assert (read["job_id"], read["name"]) == (str(bench.job.id), bench.job.name)


async def test_the_signal_wakes_a_wait_in_a_task_and_in_another_loop():
    woken: list[str] = []
    waiting = threading.Barrier(2)

    def elsewhere(ctx: Any) -> None:
        async def main() -> None:
            asyncio.get_running_loop().call_soon(waiting.wait)
            woken.append((await ctx.signal.wait()).code)

        asyncio.run(main())

    bench = Bench(elsewhere)
    with bench.started() as task:
        await asyncio.to_thread(waiting.wait)
        bench.attempt.cancel(Ending.DRAIN)
        await task
    assert woken == ["X_DRAINING"]


async def test_a_blocking_step_on_a_loops_own_thread_is_refused():
    def handler(step: SyncStep) -> None:
        async def main() -> None:
            step.run("a", lambda: 1)

        asyncio.run(main())

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.error_code == "X_INVARIANT"


async def test_threads_that_are_stuck_let_the_loop_close():
    end = threading.Event()
    threads = Threads(2)
    waits = [threads.run(end.wait, asyncio.get_running_loop()) for _ in range(3)]
    waits[0].cancel()
    assert not waits[0].done()
    threads.release()
    for wait in waits:
        with pytest.raises(Aborted):
            await wait
    end.set()


async def test_threads_are_started_when_needed_and_never_more_than_their_number():
    threads = Threads(3)
    names: set[str] = set()
    together = threading.Barrier(3)

    def work() -> None:
        names.add(threading.current_thread().name)
        together.wait(5)

    loop = asyncio.get_running_loop()
    await asyncio.gather(*(threads.run(work, loop) for _ in range(30)))
    assert len(names) == 3
    before = threading.active_count()
    await threads.run(lambda: None, loop)
    assert threading.active_count() == before


async def test_a_context_variable_of_the_caller_does_not_leak_between_attempts():
    whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody")
    seen: list[str] = []

    async def handler() -> None:
        seen.append(whose.get())
        whose.set("the first")

    for _ in range(2):
        await Bench(handler).run()
    assert seen == ["nobody", "nobody"]


async def test_the_step_that_runs_is_shown_with_the_renewal():
    begun, end = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await end.wait()

    async def handler(step: Step) -> None:
        await step.run("slow", slow)

    bench = Bench(handler)
    with bench.started() as task:
        await begun.wait()
        beat = bench.attempt.beat(0.0)
        assert beat is not None
        assert beat.step == "slow"
        end.set()
        await task
    await eventually(lambda: bench.attempt.step is None)
