"""What an application's `report` is told of a failed attempt."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias
from uuid import UUID

from ultijobs._execution.failure import Failure
from ultijobs._execution.outcome import Decision
from ultijobs._log import RateLimit, emit
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.records import Outcome, StopReason

__all__ = ["FailureReport", "Report", "deliver"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """One failed attempt: `warning` when it is tried again after `retry_in`, `error` when the job has stopped."""

    severity: Literal["warning", "error"]
    error: BaseException
    error_code: str
    fingerprint: str
    job_id: UUID
    run_id: UUID
    name: str
    queue: str
    tenant: str | None
    attempt: int
    max_attempts: int
    stop_reason: StopReason | None
    retry_in: timedelta | None

    @classmethod
    def of(cls, job: ClaimedJob, error: BaseException, failure: Failure, decision: Decision) -> FailureReport:
        retried = decision.outcome is Outcome.RETRIED
        return cls(
            severity="warning" if retried else "error",
            error=error,
            error_code=failure.code,
            fingerprint=failure.fingerprint,
            job_id=job.id,
            run_id=job.run_id,
            name=job.name,
            queue=job.queue,
            tenant=job.tenant_id,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            stop_reason=decision.stop_reason,
            retry_in=decision.delay if retried else None,
        )


Report: TypeAlias = Callable[[FailureReport], Awaitable[None] | None]
"""Called once per failed attempt, after its outcome is stored; never for a cancel or a lost lease."""


async def deliver(report: Report, failure: FailureReport, said: RateLimit) -> None:
    """Calls `report`; what it raises is logged, as often as `said` admits, and changes nothing for the job."""
    try:
        answer = report(failure)
        if inspect.isawaitable(answer):
            await answer
    except Exception as trouble:  # noqa: BLE001 - the job's outcome does not depend on who is told
        held_back = said.admit("jobs.report.failed")
        if held_back is None:
            return
        more = f" ({held_back} more since the last line)" if held_back else ""
        emit(
            logging.WARNING,
            "jobs.report.failed",
            f"App(report=…) raised {type(trouble).__qualname__}: {trouble}{more}",
            exc_info=trouble,
            job_id=failure.job_id,
            run_id=failure.run_id,
            name=failure.name,
            attempt=failure.attempt,
        )
