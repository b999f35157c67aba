"""Cancelled, lost, drained: who may still write, what is settled, what is logged."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from tests.support.attempts import Bench
from tests.support.eventually import eventually
from ultijobs._execution.attempt import Attempt
from ultijobs._execution.ending import Ending
from ultijobs._execution.report import FailureReport
from ultijobs._queue.claims import Verdict
from ultijobs._queue.records import Outcome
from ultijobs._retry import Terminal
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs.errors import UltijobsError


@pytest.mark.parametrize("why", [Ending.CANCELLED, Ending.LOST])
async def test_after_a_cancel_or_a_loss_nothing_is_written_and_nothing_is_settled(why: Ending):
    seen: list[Any] = []
    running = asyncio.Event()

    async def handler(step: Step, ctx: Any) -> None:
        running.set()
        try:
            await ctx.signal.wait()
        except asyncio.CancelledError:
            seen.append(ctx.signal.reason.code)
            try:
                await step.run("late", lambda: seen.append("ran"))
            except UltijobsError as error:
                seen.append(error.code)
            raise

    bench = Bench(handler)
    with bench.started() as task:
        await running.wait()
        bench.attempt.cancel(why)
        assert bench.attempt.beat(0.0) is None
        assert await task is None
    assert seen == ["X_ABORTED" if why is Ending.CANCELLED else "X_JOB_LEASE_LOST", "X_ABORTED"]
    assert bench.steps.writes == []
    assert bench.attempt.ending is why


async def test_a_body_that_ignores_its_cancel_is_logged_once_and_its_result_discarded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ultijobs._execution.deadlines.PATIENCE", 0.0)
    running, ignored, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def body() -> str:
        running.set()
        await end.wait()
        return "done"

    async def handler() -> str:
        inner = asyncio.ensure_future(body())
        while not inner.done():
            try:
                await asyncio.shield(inner)
            except asyncio.CancelledError:
                ignored.set()
        return inner.result()

    bench = Bench(handler)
    with bench.started() as task, caplog.at_level(logging.WARNING):
        await running.wait()
        bench.attempt.cancel(Ending.CANCELLED)
        await ignored.wait()
        for _ in range(3):
            bench.attempt.check()
        assert not task.done()
        end.set()
        assert await task is None
    assert [record.__dict__["event"] for record in caplog.records].count("jobs.cancel.ignored") == 1


async def test_a_body_that_ends_when_it_is_cancelled_leaves_no_line(caplog: pytest.LogCaptureFixture):
    running = asyncio.Event()

    async def handler() -> None:
        running.set()
        await asyncio.Event().wait()

    bench = Bench(handler)
    with bench.started() as task, caplog.at_level(logging.DEBUG):
        await running.wait()
        bench.attempt.cancel(Ending.CANCELLED)
        assert await task is None
    assert caplog.records == []


async def test_a_drained_body_is_handed_back_without_cost_and_what_it_did_is_recorded():
    running, end = threading.Event(), threading.Event()

    def charge() -> str:
        running.set()
        end.wait()
        return "charged"

    async def handler(step: Step) -> None:
        await step.run("charge", charge)
        await asyncio.Event().wait()

    bench = Bench(handler, attempts=1)
    with bench.started() as task:
        await eventually(running.is_set)
        bench.attempt.cancel(Ending.DRAIN)
        end.set()
        settlement = await task
    assert settlement is not None
    assert (settlement.outcome, settlement.delay.total_seconds()) == (Outcome.RETURNED, 0)
    assert bench.steps.records["charge"].status == "completed"


async def test_a_body_that_finishes_while_it_is_drained_is_done():
    running = asyncio.Event()

    async def handler() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    bench = Bench(handler)
    with bench.started() as task:
        await running.wait()
        bench.attempt.cancel(Ending.DRAIN)
        settlement = await task
    assert settlement is not None
    assert settlement.outcome is Outcome.OK


async def test_a_plain_handler_ends_by_its_signal_when_it_is_drained():
    running = threading.Event()

    def handler(ctx: Any, step: SyncStep) -> None:
        running.set()
        while not ctx.signal.is_set():
            threading.Event().wait(0.005)
        ctx.signal.raise_if_set()

    bench = Bench(handler)
    with bench.started() as task:
        await eventually(running.is_set)
        bench.attempt.cancel(Ending.DRAIN)
        settlement = await task
    assert settlement is not None
    assert settlement.outcome is Outcome.RETURNED


async def test_a_claim_can_be_handed_back_at_once_and_its_body_writes_no_more():
    refused: list[str] = []
    running, end = asyncio.Event(), asyncio.Event()

    async def handler(step: Step) -> None:
        running.set()
        try:
            await asyncio.shield(asyncio.ensure_future(end.wait()))
        except asyncio.CancelledError:
            await end.wait()
        try:
            await step.run("late", lambda: 1)
        except UltijobsError as error:
            refused.append(error.code)

    bench = Bench(handler)
    with bench.started() as task:
        await running.wait()
        settlement = bench.attempt.hand_back()
        end.set()
        await task
    assert settlement is not None
    assert settlement.outcome is Outcome.RETURNED
    assert refused == ["X_ABORTED"]
    assert bench.steps.writes == []


async def test_a_body_over_its_deadline_that_is_given_up_has_failed_by_that():
    running, end = threading.Event(), threading.Event()

    def handler() -> None:
        running.set()
        end.wait()

    bench = Bench(handler)
    with bench.started() as task:
        await eventually(running.is_set)
        bench.attempt.cancel(Ending.TIMEOUT)
        settlement = bench.attempt.hand_back()
        end.set()
        await task
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.RETRIED, "X_JOB_TIMEOUT")


async def test_a_cancel_before_the_body_has_begun_keeps_it_from_beginning():
    async def handler() -> None:
        raise AssertionError

    bench = Bench(handler)
    bench.claim().cancel(Ending.LOST)
    assert await bench.attempt.run() is None


async def test_a_loss_after_a_timeout_still_means_that_nothing_is_settled():
    running, end = asyncio.Event(), asyncio.Event()

    async def handler() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await end.wait()

    bench = Bench(handler)
    with bench.started() as task:
        await running.wait()
        bench.attempt.cancel(Ending.TIMEOUT)
        await asyncio.sleep(0)
        bench.attempt.cancel(Ending.LOST)
        end.set()
        assert await task is None


async def test_a_write_that_the_store_refuses_ends_what_the_attempt_may_do():
    codes: list[str] = []

    async def handler(step: Step) -> None:
        bench.steps.lease_no += 1
        for name in ("a", "b"):
            try:
                await step.run(name, lambda: 1)
            except UltijobsError as error:
                codes.append(error.code)

    bench = Bench(handler)
    settlement = await bench.run()
    assert codes == ["X_ABORTED", "X_ABORTED"]
    assert bench.steps.writes == []
    # The fence of the store answers this one: it says whether the claim was lost or cancelled, and changes nothing.
    assert settlement is not None
    assert settlement.outcome is Outcome.RETURNED


async def test_the_original_error_wins_over_a_failed_record_of_it(caplog: pytest.LogCaptureFixture):
    def broken() -> None:
        raise Terminal("the real reason")

    async def handler(step: Step) -> None:
        await step.run("broken", broken)

    bench = Bench(handler)
    bench.steps.refusal = lambda write: ConnectionResetError("the database went away")
    with caplog.at_level(logging.WARNING):
        settlement = await bench.run()
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.DEAD, "X_TERMINAL")
    assert "the real reason" in str(settlement.error)
    assert "jobs.step.unrecorded" in [record.__dict__["event"] for record in caplog.records]


async def test_a_result_whose_record_fails_fails_the_attempt():
    async def handler(step: Step) -> None:
        await step.run("a", lambda: 1)

    bench = Bench(handler)
    bench.steps.refusal = lambda write: ConnectionResetError("the database went away")
    settlement = await bench.run()
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.RETRIED, "ConnectionResetError")


class Reports:
    def __init__(self) -> None:
        self.seen: list[FailureReport] = []

    async def __call__(self, failure: FailureReport) -> None:
        self.seen.append(failure)


async def test_each_failed_attempt_is_reported_once_with_what_follows():
    async def handler() -> None:
        raise ValueError("x")

    reports = Reports()
    bench = Bench(handler, attempts=2, report=reports)
    assert await bench.run_out() == [Outcome.RETRIED, Outcome.DEAD]
    told = [(r.severity, r.attempt, r.stop_reason, r.error_code) for r in reports.seen]
    assert told == [("warning", 1, None, "ValueError"), ("error", 2, "attempts-exhausted", "ValueError")]
    assert reports.seen[0].retry_in is not None
    assert reports.seen[0].job_id == bench.job.id
    assert isinstance(reports.seen[0].error, ValueError)


async def test_a_cancel_a_loss_a_suspension_and_a_late_settlement_are_not_reported():
    reports = Reports()

    async def failing() -> None:
        raise ValueError("x")

    async def sleeping(step: Step) -> None:
        await step.sleep("1h")

    for verdict in (Verdict.LOST, Verdict.CANCELLED):
        attempt: Attempt = Bench(failing, report=reports).claim()
        await attempt.run()
        await attempt.confirm(verdict)
    await Bench(sleeping, report=reports).run()
    for why in (Ending.LOST, Ending.CANCELLED, Ending.DRAIN):
        attempt = Bench(failing, report=reports).claim()
        attempt.cancel(why)
        await attempt.run()
        await attempt.confirm(Verdict.SETTLED)
    assert reports.seen == []


async def test_a_report_that_fails_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture):
    def report(failure: FailureReport) -> None:
        raise RuntimeError("the tracker is down")

    async def handler() -> None:
        raise ValueError("x")

    bench = Bench(handler, report=report)
    with caplog.at_level(logging.WARNING):
        settlement = await bench.run()
    assert settlement is not None
    assert settlement.outcome is Outcome.RETRIED
    assert "jobs.report.failed" in [record.__dict__["event"] for record in caplog.records]
