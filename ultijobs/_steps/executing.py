"""A step whose function is running: its deadline, and how it is told to end."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ultijobs._durations import render
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs._steps.codec import Codec
from ultijobs._steps.context import StepScope
from ultijobs.errors import JobTimeout

__all__ = ["Executing", "Replayed"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A step that is done already; its stored result."""

    value: Any


class Executing:
    """One call of a step's function, from the moment it may begin until its record is durable."""

    __slots__ = (
        "_began",
        "_cancelling",
        "_position",
        "_task",
        "_timeout",
        "_tries",
        "codec",
        "deadline",
        "expired",
        "name",
        "scope",
    )

    def __init__(
        self,
        name: str,
        scope: StepScope,
        codec: Codec[Any],
        *,
        position: int,
        tries: int,
        timeout: timedelta | None,
    ) -> None:
        self.name = name
        self.scope = scope
        self.codec = codec
        self.expired = False
        self._position = position
        self._tries = tries
        self._timeout = timeout
        self._began = time.monotonic()
        self.deadline = math.inf if timeout is None else self._began + timeout.total_seconds()
        # The task to cancel at the deadline; none while the function runs in a thread.
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0

    def runs_here(self) -> None:
        """The function runs in the calling task, which is cancelled at the deadline."""
        if self._timeout is not None and (task := asyncio.current_task()) is not None:
            self._task = task
            self._cancelling = task.cancelling()

    def expire(self) -> None:
        """The deadline has passed: the signal is set, then the function is cancelled."""
        self.expired = True
        self.scope.signal.set(self.overrun())
        if self._task is not None:
            self._task.cancel()

    def stop_clock(self) -> None:
        """The function has ended: what is left is its record, which no deadline of the step interrupts."""
        self.deadline = math.inf

    def overrun(self) -> JobTimeout:
        limit = "" if self._timeout is None else f" of {render(self._timeout)}"
        return JobTimeout(
            f"the step {self.name!r} ran over its timeout{limit}",
            fix="raise step_timeout=, or split the step",
            meta={"step": self.name},
        )

    def absorb_cancel(self) -> bool:
        """Takes back the cancel that `expire` sent; True when no other cancel came besides."""
        if self._task is None:
            return True
        return self._task.uncancel() <= self._cancelling

    def record(
        self, job: ClaimedJob, status: StepStatus, *, output: str | None = None, error: str | None = None
    ) -> StepWrite:
        return StepWrite(
            job_id=job.id,
            run_id=job.run_id,
            lease_no=job.lease_no,
            name=self.name,
            kind=StepKind.RUN,
            status=status,
            position=self._position,
            output=output,
            error=error,
            tries=self._tries,
            took=timedelta(seconds=time.monotonic() - self._began),
        )
