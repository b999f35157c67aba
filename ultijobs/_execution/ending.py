"""Why a body is told to end, and the lines that the log has of it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from ultijobs._durations import render
from ultijobs._log import emit
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.lanes import capped_name
from ultijobs.errors import Aborted, Draining, JobLeaseLost, JobSlotLost, JobTimeout, UltijobsError

__all__ = ["Ending", "log", "over", "reason_of"]


class Ending(StrEnum):
    """Why a body was told to end before it did so by itself."""

    TIMEOUT = "timeout"
    """Its deadline has passed: no write is accepted, the attempt fails with `X_JOB_TIMEOUT`."""
    CANCELLED = "cancelled"
    """An operator cancelled the job: no write is accepted, nothing is settled."""
    LOST = "lost"
    """The claim is not ours any more: nothing at all is written."""
    DRAIN = "drain"
    """The worker stops: what has been done is still recorded, then the claim is handed back without cost."""


def reason_of(why: Ending, job: ClaimedJob, timeout: timedelta | None) -> UltijobsError:
    """What `ctx.signal.reason` says."""
    if why is Ending.TIMEOUT:
        limit = "the timeout of a step" if timeout is None else f"its timeout of {render(timeout)}"
        return JobTimeout(f"job {job.name} ran over {limit}")
    if why is Ending.CANCELLED:
        return Aborted(f"job {job.name} was cancelled")
    if why is Ending.LOST and capped_name(job.lane) is not None:
        return JobSlotLost(
            f"the claim {job.lease_no} of job {job.name} is not held any more, and its slot is another's"
        )
    if why is Ending.LOST:
        return JobLeaseLost(f"the claim {job.lease_no} of job {job.name} is not held any more")
    return Draining("the worker is shutting down")


def over(job: ClaimedJob) -> UltijobsError:
    """Why a task that outlives its attempt is refused."""
    return Aborted(f"attempt {job.attempt} of job {job.name} is over")


def log(
    level: int,
    event: str,
    message: str,
    job: ClaimedJob,
    worker_id: str | None = None,
    *,
    code: str | None = None,
    stop_reason: str | None = None,
) -> None:
    """One line with the ids of the attempt."""
    emit(
        level,
        event,
        message,
        job_id=job.id,
        run_id=job.run_id,
        name=job.name,
        attempt=job.attempt,
        lease_no=job.lease_no,
        worker_id=worker_id,
        code=code,
        stop_reason=stop_reason,
    )
