"""One attempt: from a claimed row to the settlement that says what became of it."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from datetime import timedelta
from typing import Any, Final

from ultijobs._durations import render
from ultijobs._execution import outcome
from ultijobs._execution.body import Body
from ultijobs._execution.children import end_children
from ultijobs._execution.deadlines import Deadlines
from ultijobs._execution.ending import Ending, log, over, reason_of
from ultijobs._execution.failure import Failure, describe
from ultijobs._execution.host import Handler, Host
from ultijobs._execution.report import FailureReport, deliver
from ultijobs._execution.spans import traced
from ultijobs._queue.claims import Beat, ClaimedJob, Settlement, Verdict
from ultijobs._queue.records import Outcome
from ultijobs._steps.context import RUNNING, Context
from ultijobs._steps.ending import contained, runs_in
from ultijobs._steps.process import PROCESS
from ultijobs._steps.signal import StopSignal
from ultijobs.errors import Draining, JobRowStatusUnknown, JobTimeout, RunCodeChanged

__all__ = ["Attempt"]

UNREADABLE_DELAY: Final = timedelta(seconds=30)


class Attempt:
    """Runs the handler of one claim to its end.

    All methods belong to the host's loop, except `beat`, `due`, `step`, `tasks` and `abandoned`, which any thread may
    read. The keeper calls `check` on the loop once `due` (of `time.monotonic`) has passed, and sends what `beat`
    answers with each renewal, until the settlement has landed.
    """

    def __init__(self, job: ClaimedJob, handler: Handler, host: Host) -> None:
        self.job = job
        self.handler = handler
        self.ending: Ending | None = None
        """Why the body was told to end; None while it runs, and when it ended by itself."""
        self._host = host
        self._context: Context[Any] = Context(job, host.services, StopSignal())
        self._body = Body(job, handler, host, self._context)
        self._deadlines = Deadlines(handler.timeout, host.grace, host.overtime, self._body)
        self._task: asyncio.Task[Any] | None = None
        self._over = False
        self._failed: tuple[BaseException, Failure, outcome.Decision] | None = None

    # -- for the keeper --------------------------------------------------------------------------------
    @property
    def due(self) -> float:
        """When `check` has something to do; infinity when only the body can end the attempt."""
        return math.inf if self._over else self._deadlines.due()

    @property
    def step(self) -> str | None:
        """The step that is executing; the one that began first when there are several."""
        runner = self._body.runner
        executing = None if runner is None else list(runner.executing)
        return executing[0] if executing else None

    @property
    def abandoned(self) -> bool:
        """True while the body goes on although its grace is over."""
        return not self._over and self._deadlines.abandoned(time.monotonic())

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that run its code: its own, and those that the handler has made."""
        own = () if self._task is None else (self._task,)
        return [*own, *tuple(self._context.children or ())]

    @property
    def replayed(self) -> int:
        """How many steps this attempt took from storage."""
        return self._body.replayed

    @property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the steps that it executed, and of those that it took from storage, in their order."""
        return self._body.steps

    @property
    def error(self) -> BaseException | None:
        """What it failed with; None before its end, and for any other outcome."""
        return None if self._failed is None else self._failed[0]

    @property
    def unreadable(self) -> bool:
        """True when the run has a record of a newer release: this process must not claim the job again."""
        return self._body.unreadable

    @property
    def _void(self) -> bool:
        """True when nothing of this claim may be written or settled any more."""
        return self.ending is Ending.LOST or self.ending is Ending.CANCELLED

    def beat(self, now: float) -> Beat | None:
        """The renewal to send, by the deadlines alone: right even while the loop is blocked. None: renew no more."""
        if self._void:
            return None
        late = None
        if not self._over:
            if self._deadlines.given_up(now):
                return None
            late = JobTimeout.code if self._deadlines.abandoned(now) else None
        return Beat(self.job.id, self.job.lease_no, self.step, self._context.last_progress, late, self.job.lane)

    def check(self) -> None:
        """Acts on what is due: expires steps, cancels the body, logs one that is abandoned or ignores its cancel."""
        if self._over:
            return
        now = time.monotonic()
        if self._body.runner is not None:
            self._body.runner.expire(now)
        if self.ending is None and self._deadlines.passed(now):
            self.cancel(Ending.TIMEOUT)
        if self._deadlines.newly_abandoned(now):
            # Also when only a step of it cannot be ended: nothing that comes after that step counts.
            self.cancel(Ending.TIMEOUT)
            grace = render(self._host.grace)
            self._warn("jobs.timeout.abandoned", f"job {self.job.name} goes on {grace} after its timeout")
        if self._deadlines.newly_ignored(now):
            self._warn("jobs.cancel.ignored", f"job {self.job.name} goes on although it is cancelled")

    def cancel(self, why: Ending) -> None:
        """Tells the body to end: the signal, the write fence, then the cancellation of its task.

        Only the first call does so; `LOST` and `CANCELLED` later still decide that nothing is settled.
        """
        final = why is Ending.LOST or why is Ending.CANCELLED
        first = self.ending is None
        if self._void or not (first or final):
            return
        if self._over:
            if final:
                self.ending = why
            return
        self.ending = why
        reason = reason_of(why, self.job, self.handler.timeout)
        self._context.signal.set(reason)
        self._deadlines.told(cancelled=why is Ending.CANCELLED)
        if why is not Ending.DRAIN:
            self._body.close(reason)
        if first and self._task is not None and not self._body.in_thread:
            self._task.cancel()

    def hand_back(self) -> Settlement | None:
        """Gives the claim up at once, whatever the body still does: for a process that is about to end.

        At no cost, except that a body over its deadline has failed by that already.
        """
        self.cancel(Ending.DRAIN)
        self._body.close(reason_of(Ending.DRAIN, self.job, None))
        if self._void:
            return None
        late = self._stopped(None)
        return outcome.returned(self.job, self._host.worker_id) if late is None else self._failure(late)

    # -- the run ---------------------------------------------------------------------------------------
    async def run(self) -> Settlement | None:
        """Runs the handler; answers what to settle once its code, and every task that it made, has ended.

        None when the claim was cancelled or lost: nothing may be written then. `confirm` is to follow the settlement.
        """
        return await traced(self, self._run)

    async def _run(self) -> Settlement | None:
        task = self._task = asyncio.current_task()
        self._deadlines.begin()
        token = RUNNING.set(self._context)
        error: BaseException | None = None
        try:
            if self.ending is None:
                await self._body.run()
        except BaseException as raised:
            if isinstance(raised, GeneratorExit) and not runs_in(task):
                raise
            # Whatever else ends the body, `sys.exit` too, is the outcome of the attempt and not of its process.
            error = contained(raised, "the handler")
        finally:
            if PROCESS.pid != self._host.pid:
                # A child that the handler forked has come out of it: only the parent may speak for the claim.
                os._exit(0 if error is None else 1)
            RUNNING.reset(token)
        self._over = True
        while task is not None and task.cancelling():
            task.uncancel()
        if self._body.runner is not None:
            self._body.close(over(self.job))
        if self._context.children:
            self._context.signal.set(over(self.job))
            await end_children(self._context, self.job, self._host.grace.total_seconds())
        self._context.children = None
        return self._settlement(error)

    async def confirm(self, verdict: Verdict) -> None:
        """Logs and reports a failed attempt, once its settlement has landed; nothing for any other."""
        if self._failed is None or verdict is not Verdict.SETTLED:
            return
        error, failure, decision = self._failed
        retried = decision.outcome is Outcome.RETRIED
        follows = f"tried again in {render(decision.delay)}" if retried else f"stopped as {decision.stop_reason}"
        self._warn(
            "jobs.attempt.failed",
            f"attempt {self.job.attempt} of {self.job.max_attempts} of {self.job.name}, {follows}: {failure.text}",
            code=failure.code,
            stop_reason=decision.stop_reason,
        )
        if self._host.report is not None:
            await deliver(self._host.report, FailureReport.of(self.job, error, failure, decision), self._host.said)

    # -- what became of it -----------------------------------------------------------------------------
    def _settlement(self, error: BaseException | None) -> Settlement | None:
        job, worker_id = self.job, self._host.worker_id
        if self._void:
            return None
        if self._body.fenced:
            # The store has refused a write; the fenced answer to this tells a cancel from a lost lease.
            return outcome.returned(job, worker_id)
        if self.unreadable and error is not None:
            return self._unread(error)
        stopped = self._stopped(error) or self._changed(error)
        if stopped is not None:
            return self._failure(stopped)
        if self._body.parked and self._body.runner is not None:
            return outcome.suspended(job, worker_id, self._body.runner.wake_at)
        return outcome.finished(job, worker_id) if error is None else self._raised(error)

    def _stopped(self, error: BaseException | None) -> BaseException | None:
        """What decides whatever the body made of it: a run that cannot go on, a deadline."""
        if self._body.fatal is not None:
            return self._body.fatal
        if self.ending is not Ending.TIMEOUT:
            return None
        late = reason_of(Ending.TIMEOUT, self.job, self.handler.timeout)
        late.__cause__ = error
        return late.with_traceback(None if error is None else error.__traceback__)

    def _changed(self, error: BaseException | None) -> BaseException | None:
        try:
            if error is None:
                self._body.refuse_forgotten()
        except RunCodeChanged as changed:
            return changed
        return None

    def _unread(self, error: BaseException) -> Settlement:
        self._warn("jobs.run.unreadable", str(error), code=JobRowStatusUnknown.code)
        failure = describe(error, limit=self._host.error_limit)
        return outcome.returned(self.job, self._host.worker_id, delay=UNREADABLE_DELAY, failure=failure)

    def _raised(self, error: BaseException) -> Settlement:
        leaves = self._host.winding_down and isinstance(error, Draining)
        if self.ending is Ending.DRAIN or leaves:
            return outcome.returned(self.job, self._host.worker_id)
        return self._failure(error, terminal=self._body.misfit)

    def _failure(self, error: BaseException, *, terminal: bool = False) -> Settlement:
        host = self._host
        terminal = terminal or error is self._body.fatal
        decision = outcome.decide(error, self.job, self.handler.retry, host.classifier, terminal=terminal)
        failure = outcome.describe_for(error, decision, host.error_limit, self.job)
        self._failed = (error, failure, decision)
        return outcome.failed(self.job, host.worker_id, decision, failure)

    def _warn(self, event: str, message: str, *, code: str | None = None, stop_reason: str | None = None) -> None:
        log(logging.WARNING, event, message, self.job, self._host.worker_id, code=code, stop_reason=stop_reason)
