"""Deadlines: cancel, fence, wait for the body, then settle; what cannot be ended is abandoned."""

import asyncio
import contextlib
import logging
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.support.attempts import Bench, Declared
from tests.support.eventually import eventually
from ultijobs._execution.attempt import Attempt
from ultijobs._queue.claims import Settlement
from ultijobs._queue.records import Outcome
from ultijobs._steps.context import current
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs.errors import UltijobsError

SHORT = timedelta(milliseconds=50)


async def keep(attempt: Attempt, task: asyncio.Task[Settlement | None]) -> Settlement | None:
    """What the keeper does: `check` once `due` has passed."""
    while not task.done():
        if attempt.due <= time.monotonic():
            attempt.check()
        await asyncio.sleep(0.005)
    return task.result()


async def test_a_body_over_its_timeout_is_cancelled_and_settled_only_when_it_has_ended():
    told: list[Any] = []

    async def handler(ctx: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(ctx.signal.reason.code)
            await asyncio.sleep(0.05)
            told.append("cleaned up")
            raise

    bench = Bench(Declared(handler, timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.RETRIED, "X_JOB_TIMEOUT")
    assert told == ["X_JOB_TIMEOUT", "cleaned up"]
    assert "50ms" in str(settlement.error)


async def test_a_body_that_returns_after_its_deadline_has_timed_out_all_the_same():
    async def handler() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done, I think"
        return ""

    bench = Bench(Declared(handler, timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"
    assert task.cancelling() == 0


async def test_after_the_deadline_no_step_is_run_and_nothing_is_written():
    refused: list[str] = []

    async def handler(step: Step) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await step.run("late", lambda: refused.append("ran"))
            except UltijobsError as error:
                refused.append(error.code)

    bench = Bench(Declared(handler, timeout=SHORT))
    with bench.started() as task:
        await keep(bench.attempt, task)
    assert refused == ["X_ABORTED"]
    assert bench.steps.writes == []


async def test_a_step_over_its_timeout_fails_the_attempt_and_is_recorded_failed():
    calls: list[str] = []

    async def fast() -> None:
        calls.append("a")

    async def slow() -> None:
        calls.append("b")
        await asyncio.Event().wait()

    async def handler(step: Step) -> None:
        await step.run("a", fast)
        await step.run("b", slow)

    bench = Bench(Declared(handler, step_timeout=SHORT), attempts=2)
    for outcome in (Outcome.RETRIED, Outcome.DEAD):
        with bench.started() as task:
            settlement = await keep(bench.attempt, task)
        assert settlement is not None
        assert (settlement.outcome, settlement.error_code) == (outcome, "X_JOB_TIMEOUT")
        assert "'b'" in str(settlement.error)
    assert calls == ["a", "b", "b"]
    assert bench.steps.records["b"].status == "failed"
    assert "X_JOB_TIMEOUT" in str(bench.steps.records["b"].error)


async def test_a_result_that_comes_after_the_steps_deadline_is_not_recorded():
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "late"

    async def handler(step: Step) -> None:
        await step.run("stubborn", stubborn)

    bench = Bench(Declared(handler, step_timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"
    assert bench.steps.records["stubborn"].status == "failed"


async def test_a_step_that_ended_in_time_is_not_late_because_its_record_is():
    async def quick() -> str:
        return "in time"

    def broken() -> None:
        raise ConnectionError("the real reason")

    async def handler(step: Step) -> None:
        assert await step.run("quick", quick) == "in time"
        with pytest.raises(ConnectionError, match="the real reason"):
            await step.run("broken", broken)

    bench = Bench(Declared(handler, step_timeout=timedelta(milliseconds=500)))
    bench.steps.held_back = []
    with bench.started() as task:
        for number in (1, 2):
            await eventually(lambda number=number: len(bench.steps.held_back or ()) == number)
            bench.attempt.check()
            assert bench.attempt.due == float("inf")
            bench.steps.held_back[number - 1]()
        settlement = await task
    assert settlement is not None
    assert settlement.outcome is Outcome.OK


async def test_a_handler_may_answer_the_timeout_of_a_step_like_any_error_of_it():
    async def slow() -> None:
        await asyncio.Event().wait()

    async def handler(step: Step) -> None:
        try:
            await step.run("primary", slow)
        except UltijobsError:
            await step.with_timeout("1h").run("fallback", lambda: 1)
        await asyncio.sleep(0)

    bench = Bench(Declared(handler, step_timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.outcome is Outcome.OK


async def test_a_blocking_step_is_told_by_its_signal_and_waited_for():
    seen: list[bool] = []

    def blocking() -> None:
        signal = current().step.signal
        while not signal.is_set():
            time.sleep(0.005)
        seen.append(True)

    async def handler(step: Step) -> None:
        await step.run("blocking", blocking)

    bench = Bench(Declared(handler, step_timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"
    assert seen == [True]


async def test_a_plain_handler_is_told_by_its_signal_and_cannot_be_settled_before_it_ends():
    def handler(ctx: Any, step: SyncStep) -> None:
        while not ctx.signal.is_set():
            time.sleep(0.005)
        ctx.signal.raise_if_set()

    bench = Bench(Declared(handler, timeout=SHORT))
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"


async def test_a_body_that_goes_on_after_its_grace_is_abandoned_with_one_line_and_settled_when_it_ends(
    caplog: pytest.LogCaptureFixture,
):
    end = threading.Event()

    def handler() -> None:
        end.wait()

    bench = Bench(Declared(handler, timeout=SHORT), grace=SHORT, overtime=timedelta(hours=1))
    with bench.started() as task, caplog.at_level(logging.WARNING):
        keeper = asyncio.create_task(keep(bench.attempt, task))
        await eventually(lambda: bench.attempt.abandoned)
        await eventually(lambda: bench.attempt.due > time.monotonic() + 100)
        beat = bench.attempt.beat(time.monotonic())
        assert beat is not None
        assert beat.error_code == "X_JOB_TIMEOUT"
        assert not task.done()
        end.set()
        settlement = await keeper
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"
    assert not bench.attempt.abandoned
    assert [record.__dict__["event"] for record in caplog.records].count("jobs.timeout.abandoned") == 1


async def test_an_abandoned_body_keeps_its_lease_for_the_overtime_and_no_longer():
    end = threading.Event()

    def handler() -> None:
        end.wait()

    bench = Bench(Declared(handler, timeout=SHORT), grace=SHORT, overtime=timedelta(minutes=10))
    with bench.started() as task:
        await eventually(lambda: bench.attempt.due < float("inf"))
        now = time.monotonic()
        assert bench.attempt.beat(now) is not None
        late = bench.attempt.beat(now + 60)
        assert late is not None
        assert late.error_code == "X_JOB_TIMEOUT"
        assert bench.attempt.beat(now + 601) is None
        end.set()
        await task


async def test_a_step_that_cannot_be_ended_abandons_its_attempt():
    end = threading.Event()

    async def handler(step: Step) -> None:
        await step.run("stuck", end.wait)

    bench = Bench(Declared(handler, step_timeout=SHORT), grace=SHORT)
    with bench.started() as task:
        keeper = asyncio.create_task(keep(bench.attempt, task))
        await eventually(lambda: bench.attempt.ending is not None)
        assert bench.attempt.abandoned
        assert bench.attempt.step == "stuck"
        end.set()
        settlement = await keeper
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"


async def test_deadlines_hold_for_what_comes_before_the_body_too():
    async def handler() -> None:
        raise AssertionError

    async def context(services: Any, ctx: Any) -> Any:
        await asyncio.Event().wait()

    bench = Bench(Declared(handler, timeout=SHORT), context=context)
    with bench.started() as task:
        settlement = await keep(bench.attempt, task)
    assert settlement is not None
    assert settlement.error_code == "X_JOB_TIMEOUT"


async def test_an_attempt_without_deadlines_needs_no_attention():
    async def handler(step: Step) -> None:
        await step.run("a", lambda: 1)

    bench = Bench(handler)
    attempt = bench.claim()
    assert attempt.due == float("inf")
    await attempt.run()
    assert attempt.due == float("inf")


async def test_a_timeout_of_the_handlers_own_works_as_everywhere():
    async def handler(step: Step) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await step.run("slow", asyncio.sleep, 60)
        await step.run("after", lambda: 1)

    bench = Bench(handler)
    settlement = await bench.run()
    assert settlement is not None
    assert settlement.outcome is Outcome.OK
