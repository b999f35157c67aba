"""What is recorded of a run: its steps and its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

__all__ = [
    "AttemptRecord",
    "StepAnswer",
    "StepKind",
    "StepRecord",
    "StepStatus",
    "StepWrite",
]


class StepStatus(StrEnum):
    """How far a recorded step is. `completed` is final; a failed one runs again in the next attempt."""

    COMPLETED = "completed"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    FAILED = "failed"


class StepKind(StrEnum):
    """What a step does: run a function, sleep, or wait for an event."""

    RUN = "run"
    SLEEP = "sleep"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One recorded step of a run. `status` and `kind` stay text, so that a newer release's word can be told."""

    run_id: UUID
    name: str
    kind: str
    status: str
    output: str | None
    error: str | None
    position: int
    started_at: datetime
    completed_at: datetime | None
    wake_at: datetime | None
    tries: int
    lease_no: int
    event: str | None = None
    match: str | None = None


@dataclass(slots=True)
class StepWrite:
    """A record to store for the claim `lease_no`. A completed record is immutable: a second write changes nothing."""

    job_id: UUID
    run_id: UUID
    lease_no: int
    name: str
    kind: StepKind
    status: StepStatus
    position: int
    output: str | None = None
    error: str | None = None
    tries: int = 1
    took: timedelta = timedelta(0)
    """`started_at` becomes the database's now minus this, where no earlier start is recorded."""
    wake_in: timedelta | None = None
    event: str | None = None
    match: str | None = None


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """`held` is false when the claim is not ours any more; then nothing was written."""

    held: bool
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt that did not end well, or that an operator ended. `started_at` is None where it is not known.

    `outcome` stays text, so that a newer release's word can be told.
    """

    run_id: UUID
    job_id: UUID
    attempt: int
    lease_no: int
    worker_id: str | None
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    error_code: str | None
    error: str | None
    traceback: str | None
