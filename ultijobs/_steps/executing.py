"""A step whose function is running: its deadline, and how it is told to end."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ultijobs._durations import render
from ultijobs._queue.records import ClaimedJob, StepKind, StepStatus, StepWrite
from ultijobs._steps.codec import Codec
from ultijobs._steps.context import StepScope
from ultijobs.errors import JobTimeout

__all__ = ["Executing", "Replayed"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A step that is done already; its stored result."""

    value: Any


@dataclass(slots=True, eq=False)
class Executing:
    """One call of a step's function, from the moment it may begin until its record is durable."""

    name: str
    scope: StepScope
    codec: Codec[Any]
    position: int
    tries: int
    timeout: timedelta | None
    began: float = field(default_factory=time.monotonic)
    deadline: float = math.inf
    expired: bool = False
    task: asyncio.Task[Any] | None = None
    """The task to cancel at the deadline; None while the function runs in a thread."""
    cancelling: int = 0

    def __post_init__(self) -> None:
        if self.timeout is not None:
            self.deadline = self.began + self.timeout.total_seconds()

    def runs_here(self) -> None:
        """The function runs in the calling task, which is cancelled at the deadline."""
        if self.timeout is not None and (task := asyncio.current_task()) is not None:
            self.task = task
            self.cancelling = task.cancelling()

    def expire(self) -> None:
        """The deadline has passed: the signal is set, then the function is cancelled."""
        self.expired = True
        self.scope.signal.set(self.overrun())
        if self.task is not None:
            self.task.cancel()

    def stop_clock(self) -> None:
        """The function has ended: what is left is its record, which no deadline of the step interrupts."""
        self.deadline = math.inf

    def overrun(self) -> JobTimeout:
        limit = "" if self.timeout is None else f" of {render(self.timeout)}"
        return JobTimeout(
            f"the step {self.name!r} ran over its timeout{limit}",
            fix="raise step_timeout=, or split the step",
            meta={"step": self.name},
        )

    def absorb_cancel(self) -> bool:
        """Takes back the cancel that `expire` sent; True when no other cancel came besides."""
        if self.task is None:
            return True
        return self.task.uncancel() <= self.cancelling

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
            position=self.position,
            output=output,
            error=error,
            tries=self.tries,
            took=timedelta(seconds=time.monotonic() - self.began),
        )
