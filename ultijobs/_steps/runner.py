"""The steps of one attempt: replay, record, suspend; refuse whatever comes after the attempt's end."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ultijobs._definitions.event import Event
from ultijobs._durations import Duration, parse
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.events import Sight
from ultijobs._queue.steps import StepKind, StepRecord, StepStatus, StepWrite
from ultijobs._steps.codec import Codec, codec_for
from ultijobs._steps.context import STEP, StepScope
from ultijobs._steps.ending import contained
from ultijobs._steps.executing import Executing, Replayed
from ultijobs._steps.ledger import Ledger
from ultijobs._steps.names import DerivedNames, stored_name
from ultijobs._steps.process import PROCESS
from ultijobs._steps.recorder import Recorder
from ultijobs._steps.signal import StopSignal
from ultijobs._steps.suspension import Suspended
from ultijobs._steps.threads import Threads
from ultijobs._steps.waiting import Wish
from ultijobs.errors import Invariant, JobTimeout, PayloadInvalid, RunCodeChanged, StepDuplicate, UltijobsError

__all__ = ["Runner", "StepRules"]

CALM_TURNS: Final = 5
"""Turns of the loop without a running step after which the other branches of a handler count as waiting."""


@dataclass(frozen=True, slots=True)
class StepRules:
    """The limits that steps run under."""

    timeout: timedelta | None = None
    output_limit: int = 1_048_576
    event_poll: timedelta | None = None


class Runner:
    """Runs the steps of one attempt. All methods belong to the attempt's loop."""

    def __init__(
        self,
        job: ClaimedJob,
        recorder: Recorder,
        ledger: Ledger,
        signal: StopSignal,
        threads: Threads,
        *,
        rules: StepRules,
        loop: asyncio.AbstractEventLoop,
        has_company: Callable[[], bool],
    ) -> None:
        self.job = job
        self.loop = loop
        self.threads = threads
        self.recorder = recorder
        self.executing: dict[str, Executing] = {}
        self.wake_at: datetime | None = None
        self.parked = False
        """A suspension was raised: however the handler ends, the run is parked until `wake_at`."""
        self.fatal: UltijobsError | None = None
        """What this run cannot go on after, whatever the handler makes of the exception."""
        self._ledger = ledger
        self._signal = signal
        self._rules = rules
        self._has_company = has_company
        self._derived = DerivedNames()
        self._busy = 0
        self._idle: asyncio.Event | None = None
        self._pid = PROCESS.pid

    # -- deadlines, for the attempt; read from other threads too ---------------------------------------
    def due(self) -> float:
        """The earliest deadline that a step is still to be told of."""
        return min((step.deadline for step in list(self.executing.values()) if not step.expired), default=math.inf)

    def deadline(self) -> float:
        """The earliest deadline of the steps that are running, passed or not."""
        return min((step.deadline for step in list(self.executing.values())), default=math.inf)

    def expire(self, now: float) -> None:
        """Cancels the steps that are over their deadline."""
        for step in list(self.executing.values()):
            if step.deadline <= now and not step.expired:
                step.expire()

    # -- run -------------------------------------------------------------------------------------------
    def begin(
        self, name: str, fn: Callable[..., Any], timeout: timedelta | None, codec: Codec[Any] | None
    ) -> Executing | Replayed:
        """What is stored, or the leave to call `fn`; `finish` or `fail` must follow the latter."""
        key = stored_name(name)
        record = self._ask(key, StepKind.RUN)
        try:
            codec = codec_for(fn, name) if codec is None else codec
            if record is not None and record.status == StepStatus.COMPLETED:
                return Replayed(codec.decode("null" if record.output is None else record.output, step=name))
        except PayloadInvalid as error:
            self.fatal = error
            raise
        step = Executing(
            name=key,
            scope=StepScope(name, self.job.run_id, self._signal),
            codec=codec,
            position=self._ledger.place(record),
            tries=1 if record is None else record.tries + 1,
            timeout=self._rules.timeout if timeout is None else timeout,
        )
        self.executing[key] = step
        self._busy += 1
        return step

    async def finish(self, step: Executing, value: Any) -> Any:
        """Records the result; answers what every replay will return, once that is durable."""
        try:
            self.leave_if_forked()
            step.stop_clock()
            if step.expired:
                step.absorb_cancel()
                late = step.overrun()
                await self.recorder.failure(step, late)
                raise late
            try:
                text = step.codec.encode(value, step=step.scope.name, limit=self._rules.output_limit)
                result = step.codec.decode(text, step=step.scope.name)
            except PayloadInvalid as error:
                # The effect has happened and cannot be recorded: another try would repeat it.
                self.fatal = error
                await self.recorder.failure(step, error)
                raise
            await self.recorder.write(step.record(self.job, StepStatus.COMPLETED, output=text))
            return result
        finally:
            self._end(step)

    async def fail(self, step: Executing, error: BaseException) -> BaseException:
        """Records the failure; answers the exception that the handler gets."""
        try:
            self.leave_if_forked()
            step.stop_clock()
            error = contained(error, f"the step {step.name!r}")
            if step.expired and isinstance(error, Exception | asyncio.CancelledError):
                own = step.absorb_cancel()
                late = step.overrun()
                late.__cause__ = error if isinstance(error, Exception) else None
                await self.recorder.failure(step, late)
                return late if own else error
            if isinstance(error, Exception):
                await self.recorder.failure(step, error)
            return error
        finally:
            self._end(step)

    # -- sleep -----------------------------------------------------------------------------------------
    async def sleep(self, name: str | None, duration: Duration) -> None:
        """Returns when the time is over; until then raises `Suspended`, and the run holds no process."""
        wait = parse(duration, what="step.sleep")
        key = self._derived.next(duration) if name is None else stored_name(name)
        record = self._ask(key, StepKind.SLEEP)
        if record is not None and record.status == StepStatus.COMPLETED:
            return
        wake = None if record is None else record.wake_at
        self._busy += 1
        try:
            place = self._ledger.place(record)
            if record is None and wait:
                answer = await self.recorder.write(self._sleep(key, StepStatus.SLEEPING, place, wait))
                wake = answer.wake_at or self.job.claimed_at + wait
            elif wake is None or wake <= self.job.claimed_at:
                # The store's clock alone decides: at the claim it was past the wake time, or the run had not come back.
                await self.recorder.write(self._sleep(key, StepStatus.COMPLETED, place, None))
                return
        finally:
            self._rest()
        await self._park(wake)

    # -- wait ------------------------------------------------------------------------------------------
    async def wait(self, name: str, wish: Wish) -> Event[Any] | None:
        """The event, once it is there; None when the time is over. Until then raises `Suspended`, as `sleep` does."""
        key = stored_name(name)
        record = self._ask(key, StepKind.WAIT)
        try:
            if record is not None and record.status == StepStatus.COMPLETED:
                return wish.received(record.output, name)
            self._busy += 1
            try:
                if record is None or (record.event, record.match) != (wish.event, wish.match):
                    await self.recorder.write(wish.record(self.job, key, self._ledger.place(record)))
                # After the record is there: a publish that this does not see yet finds the record.
                seen = await self.recorder.look(wish.look(self.job, key, self._rules.event_poll))
            finally:
                self._rest()
            if seen.sight is Sight.EVENT:
                return wish.received(seen.output, name)
            if seen.sight is Sight.OVER:
                wish.over(name, self.job)
                return None
        except (PayloadInvalid, JobTimeout) as error:
            self.fatal = error
            raise
        await self._park(seen.wake_at or self.job.claimed_at + wish.timeout)
        raise Suspended

    # -- inside ----------------------------------------------------------------------------------------
    def leave_if_forked(self) -> None:
        """Ends a child process that a handler forked: only the parent may speak for the claim."""
        if PROCESS.pid != self._pid:
            os._exit(0)

    def _ask(self, key: str, kind: StepKind) -> StepRecord | None:
        self.leave_if_forked()
        self.recorder.refuse_if_closed(key)
        if self.fatal is not None:
            raise self.fatal
        if self.parked:
            raise Suspended
        if STEP.get() is not None:
            raise Invariant(
                f"the step {key!r} is asked for inside of another step's function",
                fix="call it from the handler: what a step's function does is recorded as a whole",
            )
        try:
            return self._ledger.ask(key, kind)
        except (RunCodeChanged, StepDuplicate) as error:
            self.fatal = error
            raise

    async def _park(self, wake: datetime) -> None:
        if self.wake_at is None or wake < self.wake_at:
            self.wake_at = wake
        calm = 0
        while not self.parked and calm < CALM_TURNS:
            if self._busy:
                # Branches beside this one that are in a step end it first, and go on to the next.
                calm = 0
                self._idle = self._idle or asyncio.Event()
                self._idle.clear()
                await self._idle.wait()
            elif self._has_company():
                calm += 1
                await asyncio.sleep(0)
            else:
                break
        self.recorder.refuse_if_closed("sleep")
        self.parked = True
        raise Suspended

    def _end(self, step: Executing) -> None:
        self.executing.pop(step.name, None)
        self._rest()

    def _rest(self) -> None:
        self._busy -= 1
        if not self._busy and self._idle is not None:
            self._idle.set()

    def _sleep(self, key: str, status: StepStatus, place: int, wait: timedelta | None) -> StepWrite:
        job = self.job
        return StepWrite(
            job_id=job.id,
            run_id=job.run_id,
            lease_no=job.lease_no,
            name=key,
            kind=StepKind.SLEEP,
            status=status,
            position=place,
            wake_in=wait,
        )
