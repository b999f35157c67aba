"""One attempt: from a claimed row to the settlement that says what became of it."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import math
import os
import time
from datetime import timedelta
from typing import Any, Final

from ultijobs._durations import render
from ultijobs._execution import outcome
from ultijobs._execution.children import end_children
from ultijobs._execution.deadlines import Deadlines
from ultijobs._execution.ending import Ending, log, over, reason_of
from ultijobs._execution.failure import Failure, describe
from ultijobs._execution.host import Handler, Host
from ultijobs._execution.report import FailureReport, deliver
from ultijobs._queue.records import Beat, ClaimedJob, Outcome, Settlement, Verdict
from ultijobs._steps.context import RUNNING, Context
from ultijobs._steps.ledger import Ledger
from ultijobs._steps.recorder import Recorder
from ultijobs._steps.runner import Runner, StepRules
from ultijobs._steps.signal import StopSignal
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs.errors import JobRowStatusUnknown, JobTimeout, RunCodeChanged

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
        self.unreadable = False
        """The run has a record that this release does not know: this process must not claim the job again."""
        self._host = host
        self._context: Context[Any] = Context(job, host.services, StopSignal())
        self._deadlines = Deadlines(handler.timeout, host.grace, host.overtime)
        self._ledger: Ledger | None = None
        self._runner: Runner | None = None
        self._task: asyncio.Task[Any] | None = None
        self._in_thread = False
        self._over = False
        self._misfit = False
        self._failed: tuple[BaseException, Failure, outcome.Decision] | None = None
        self._pid = os.getpid()

    # -- for the keeper --------------------------------------------------------------------------------
    @property
    def due(self) -> float:
        """When `check` has something to do; infinity when only the body can end the attempt."""
        return math.inf if self._over else self._deadlines.due()

    @property
    def step(self) -> str | None:
        """The step that is executing; the one that began first when there are several."""
        executing = None if self._runner is None else list(self._runner.executing)
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

    def beat(self, now: float) -> Beat | None:
        """The renewal to send, by the deadlines alone: right even while the loop is blocked. None: renew no more."""
        if self.ending is Ending.LOST or self.ending is Ending.CANCELLED:
            return None
        late = None
        if not self._over:
            if self._deadlines.given_up(now):
                return None
            late = JobTimeout.code if self._deadlines.abandoned(now) else None
        return Beat(self.job.id, self.job.lease_no, self.step, self._context.last_progress, late)

    def check(self) -> None:
        """Acts on what is due: expires steps, cancels the body, logs one that is abandoned or ignores its cancel."""
        if self._over:
            return
        now = time.monotonic()
        if self._runner is not None:
            self._runner.expire(now)
        if self.ending is None and self._deadlines.passed(now):
            self.cancel(Ending.TIMEOUT)
        if self._deadlines.newly_abandoned(now):
            # Also when only a step of it cannot be ended: nothing that comes after that step counts.
            self.cancel(Ending.TIMEOUT)
            grace = render(self._host.grace)
            self._log(
                logging.WARNING, "jobs.timeout.abandoned", f"job {self.job.name} goes on {grace} after its timeout"
            )
        if self._deadlines.newly_ignored(now):
            self._log(logging.WARNING, "jobs.cancel.ignored", f"job {self.job.name} goes on although it is cancelled")

    def cancel(self, why: Ending) -> None:
        """Tells the body to end: the signal, the write fence, then the cancellation of its task.

        Only the first call does so; `LOST` and `CANCELLED` later still decide that nothing is settled.
        """
        final = why is Ending.LOST or why is Ending.CANCELLED
        first = self.ending is None
        if self.ending is Ending.LOST or self.ending is Ending.CANCELLED or not (first or final):
            return
        if self._over:
            if final:
                self.ending = why
            return
        self.ending = why
        reason = reason_of(why, self.job, self.handler.timeout)
        self._context.signal.set(reason)
        self._deadlines.told(cancelled=why is Ending.CANCELLED)
        if self._runner is not None and why is not Ending.DRAIN:
            self._runner.recorder.close(reason)
        if first and self._task is not None and not self._in_thread:
            self._task.cancel()

    def hand_back(self) -> Settlement | None:
        """Gives the claim up at once, whatever the body still does: for a process that is about to end."""
        self.cancel(Ending.DRAIN)
        if self._runner is not None:
            self._runner.recorder.close(reason_of(Ending.DRAIN, self.job, None))
        if self.ending is Ending.LOST or self.ending is Ending.CANCELLED:
            return None
        return outcome.returned(self.job, self._host.worker_id)

    # -- the run ---------------------------------------------------------------------------------------
    async def run(self) -> Settlement | None:
        """Runs the handler; answers what to settle once its code, and every task that it made, has ended.

        None when the claim was cancelled or lost: nothing may be written then. `confirm` is to follow the settlement.
        """
        task = self._task = asyncio.current_task()
        self._deadlines.begin()
        token = RUNNING.set(self._context)
        error: BaseException | None = None
        try:
            if self.ending is None:
                await self._body()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:  # noqa: BLE001 - whatever ends the body is the outcome of the attempt
            error = raised
        finally:
            if os.getpid() != self._pid:
                # A child that the handler forked has come out of it: only the parent may speak for the claim.
                os._exit(0 if error is None else 1)
            RUNNING.reset(token)
        self._over = True
        while task is not None and task.cancelling():
            task.uncancel()
        if self._runner is not None:
            self._runner.recorder.close(over(self.job))
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
        self._log(
            logging.WARNING,
            "jobs.attempt.failed",
            f"attempt {self.job.attempt} of {self.job.max_attempts} of {self.job.name}, {follows}: {failure.text}",
            code=failure.code,
            stop_reason=decision.stop_reason,
        )
        if self._host.report is not None:
            await deliver(self._host.report, FailureReport.of(self.job, error, failure, decision))

    async def _body(self) -> None:
        job, handler, host, context = self.job, self.handler, self._host, self._context
        if job.claims > 1:
            records = await host.steps.load(job.run_id)
            try:
                self._ledger = Ledger(records)
            except JobRowStatusUnknown:
                self.unreadable = True
                raise
        try:
            value = handler.validate(job.input)
        except Exception:
            self._misfit = True
            raise
        if host.context is not None:
            services = host.context(host.services, context)
            context.services = await services if inspect.isawaitable(services) else services
        takes = handler.takes
        arguments: dict[str, Any] = {}
        if "input" in takes:
            arguments["input"] = value
        if "ctx" in takes:
            arguments["ctx"] = context
        if "step" in takes:
            self._runner = self._deadlines.runner = self._make_runner()
            arguments["step"] = Step(self._runner) if handler.is_async else SyncStep(self._runner)
        if handler.is_async:
            await handler.fn(**arguments)
        else:
            await self._in_a_thread(functools.partial(handler.fn, **arguments))

    async def _in_a_thread(self, call: functools.partial[Any]) -> None:
        self._in_thread = True
        copied = functools.partial(contextvars.copy_context().run, call)
        try:
            value = await self._host.threads.run(copied, self._host.loop)
        finally:
            self._in_thread = False
        if inspect.isawaitable(value):
            await value

    @property
    def replayed(self) -> int:
        """How many steps this attempt took from storage."""
        return 0 if self._ledger is None else self._ledger.replayed

    def _make_runner(self) -> Runner:
        host, context = self._host, self._context
        if self._ledger is None:
            self._ledger = Ledger()
        return Runner(
            self.job,
            Recorder(self.job, host.steps, host.loop, error_limit=host.error_limit),
            self._ledger,
            context.signal,
            host.threads,
            rules=StepRules(self.handler.step_timeout, host.output_limit),
            loop=host.loop,
            has_company=lambda: bool(context.children),
        )

    # -- what became of it -----------------------------------------------------------------------------
    def _settlement(self, error: BaseException | None) -> Settlement | None:
        job, runner, worker_id = self.job, self._runner, self._host.worker_id
        if self.ending is Ending.LOST or self.ending is Ending.CANCELLED:
            return None
        if runner is not None and runner.recorder.fenced:
            # The store has refused a write; the fenced answer to this tells a cancel from a lost lease.
            return outcome.returned(job, worker_id)
        if self.unreadable and error is not None:
            return self._unread(error)
        stopped = self._stopped(error)
        if stopped is not None:
            return self._failure(stopped)
        if runner is not None and runner.parked:
            return outcome.suspended(job, worker_id, runner.wake_at)
        return outcome.finished(job, worker_id) if error is None else self._raised(error)

    def _unread(self, error: BaseException) -> Settlement:
        self._log(logging.WARNING, "jobs.run.unreadable", str(error), code=JobRowStatusUnknown.code)
        failure = describe(error, limit=self._host.error_limit)
        return outcome.returned(self.job, self._host.worker_id, delay=UNREADABLE_DELAY, failure=failure)

    def _raised(self, error: BaseException) -> Settlement:
        if self.ending is Ending.DRAIN:
            return outcome.returned(self.job, self._host.worker_id)
        return self._failure(error, terminal=self._misfit)

    def _stopped(self, error: BaseException | None) -> BaseException | None:
        """What decides whatever the body made of it: a run that cannot go on, a deadline, a step it did not ask for."""
        runner = self._runner
        if runner is not None and runner.fatal is not None:
            return runner.fatal
        if self.ending is Ending.TIMEOUT:
            late = reason_of(Ending.TIMEOUT, self.job, self.handler.timeout)
            late.__cause__ = error
            return late.with_traceback(None if error is None else error.__traceback__)
        if error is None and self._ledger is not None and not (runner is not None and runner.parked):
            try:
                self._ledger.refuse_forgotten()
            except RunCodeChanged as changed:
                return changed
        return None

    def _failure(self, error: BaseException, *, terminal: bool = False) -> Settlement:
        host = self._host
        decision = outcome.decide(error, self.job, self.handler.retry, host.classifier, terminal=terminal)
        failure = outcome.describe_for(error, decision, host.error_limit)
        self._failed = (error, failure, decision)
        return outcome.failed(self.job, host.worker_id, decision, failure)

    def _log(
        self, level: int, event: str, message: str, *, code: str | None = None, stop_reason: str | None = None
    ) -> None:
        log(level, event, message, self.job, worker_id=self._host.worker_id, code=code, stop_reason=stop_reason)
