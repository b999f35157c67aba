"""What a test looks at: the attempts that have ended, and the jobs that are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from ultijobs._queue.records import JobState, Outcome, StopReason
from ultijobs._worker.observing import Ended

__all__ = ["EnqueuedJob", "Execution", "execution"]

In = TypeVar("In")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One attempt that has ended, as the worker ended it.

    `error` is the exception itself, and None unless the attempt failed. `steps` are the names that were executed in
    this attempt, those that failed and those that wait included; `replayed` came from storage. `due_at` is when the job
    goes on, where it was retried or suspended.
    """

    job_id: UUID
    run_id: UUID
    name: str
    tenant: str | None
    attempt: int
    max_attempts: int
    outcome: Outcome
    error: BaseException | None = field(default=None, compare=False)
    error_code: str | None = None
    stop_reason: StopReason | None = None
    steps: tuple[str, ...] = ()
    replayed: tuple[str, ...] = ()
    due_at: datetime | None = None

    def __str__(self) -> str:
        told = f"{self.name} {str(self.job_id)[-8:]}, attempt {self.attempt} of {self.max_attempts}: {self.outcome}"
        if self.stop_reason is not None:
            told += f" ({self.stop_reason})"
        return told if self.error is None else f"{told}, {self.error!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedJob(Generic[In]):
    """One stored job, whatever has become of it. `input` is what a handler would get."""

    id: UUID
    run_id: UUID
    name: str
    input: In
    tenant: str | None
    idempotency_key: str | None
    queue: str
    priority: int
    state: JobState
    attempt: int
    max_attempts: int
    run_at: datetime
    created_at: datetime
    enqueued_by: str | None
    last_error: str | None


def execution(ended: Ended, now: datetime) -> Execution:
    """The record of what a worker told at `now`."""
    job, settlement = ended.job, ended.settlement
    due: datetime | None = None
    if settlement is not None and ended.outcome in {Outcome.RETRIED, Outcome.RETURNED, Outcome.SUSPENDED}:
        due = now + settlement.delay if settlement.run_at is None else settlement.run_at
    failed = ended.outcome in {Outcome.RETRIED, Outcome.DEAD, Outcome.FAILED}
    return Execution(
        job_id=job.id,
        run_id=job.run_id,
        name=job.name,
        tenant=job.tenant_id,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        outcome=ended.outcome,
        error=ended.error if failed else None,
        error_code=None if settlement is None else settlement.error_code,
        stop_reason=settlement.stop_reason if failed and settlement is not None else None,
        steps=ended.executed,
        replayed=ended.replayed,
        due_at=due,
    )
