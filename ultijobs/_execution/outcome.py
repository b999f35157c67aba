"""From what a body did to what is stored: the retry decision and the settlement."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from ultijobs._execution.classify import Classifier, sole, stated_wait
from ultijobs._execution.failure import Failure, describe
from ultijobs._queue.claims import ClaimedJob, Settlement
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._retry import RetryPolicy
from ultijobs.errors import RunCodeChanged

__all__ = ["Decision", "decide", "describe_for", "failed", "finished", "returned", "suspended", "without_texts"]

NOT_RETRIED: Final = "(not retried: the error is terminal)"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a failed attempt."""

    outcome: Literal[Outcome.RETRIED, Outcome.DEAD, Outcome.FAILED]
    stop_reason: StopReason | None = None
    delay: timedelta = timedelta(0)


def decide(
    error: BaseException, job: ClaimedJob, policy: RetryPolicy, classifier: Classifier, *, terminal: bool = False
) -> Decision:
    """`terminal` stops whatever the class of `error`; else its class decides, and the row's own maximum of attempts."""
    stopped: Literal[Outcome.DEAD, Outcome.FAILED] = Outcome.DEAD if policy.dead_letter else Outcome.FAILED
    kind = "terminal" if terminal else classifier.of(error)
    if kind == "terminal":
        changed = isinstance(error, RunCodeChanged)
        return Decision(stopped, StopReason.CODE_CHANGED if changed else StopReason.TERMINAL)
    if job.attempt >= job.max_attempts:
        return Decision(stopped, StopReason.ATTEMPTS_EXHAUSTED)
    wait = stated_wait(error, policy.max_delay) if kind == "retry-after" else None
    return Decision(Outcome.RETRIED, delay=policy.delay_for(job.attempt) if wait is None else wait)


def describe_for(error: BaseException, decision: Decision, limit: int, job: ClaimedJob) -> Failure:
    terminal = decision.stop_reason in {StopReason.TERMINAL, StopReason.CODE_CHANGED}
    return describe(sole(error), limit=limit, ending=NOT_RETRIED if terminal else "", job=job.id)


def failed(job: ClaimedJob, worker_id: str, decision: Decision, failure: Failure) -> Settlement:
    return Settlement(
        id=job.id,
        run_id=job.run_id,
        lease_no=job.lease_no,
        outcome=decision.outcome,
        attempt=job.attempt,
        worker_id=worker_id,
        queue=job.queue,
        unique=job.unique,
        lane=job.lane,
        delay=decision.delay,
        stop_reason=decision.stop_reason,
        error_code=failure.code,
        fingerprint=failure.fingerprint,
        error=failure.text,
        traceback=failure.traceback,
    )


def finished(job: ClaimedJob, worker_id: str) -> Settlement:
    return Settlement(
        job.id, job.run_id, job.lease_no, Outcome.OK, job.attempt, worker_id, job.queue, job.unique, job.lane
    )


def suspended(job: ClaimedJob, worker_id: str, run_at: datetime | None) -> Settlement:
    """Parked without cost until `run_at`."""
    return Settlement(
        id=job.id,
        run_id=job.run_id,
        lease_no=job.lease_no,
        outcome=Outcome.SUSPENDED,
        attempt=job.attempt,
        worker_id=worker_id,
        queue=job.queue,
        unique=job.unique,
        lane=job.lane,
        run_at=run_at,
    )


def returned(
    job: ClaimedJob, worker_id: str, *, delay: timedelta = timedelta(0), failure: Failure | None = None
) -> Settlement:
    """The claim is handed back; the attempt does not count."""
    return Settlement(
        id=job.id,
        run_id=job.run_id,
        lease_no=job.lease_no,
        outcome=Outcome.RETURNED,
        attempt=job.attempt,
        worker_id=worker_id,
        queue=job.queue,
        unique=job.unique,
        lane=job.lane,
        delay=delay,
        error_code=None if failure is None else failure.code,
        fingerprint=None if failure is None else failure.fingerprint,
        error=None if failure is None else failure.text,
    )


def without_texts(settlement: Settlement) -> Settlement:
    """The same outcome with placeholders, for a store that refuses a text of the first."""
    code = settlement.error_code
    return dataclasses.replace(
        settlement,
        error_code=None
        if code is None
        else "".join(char if char.isascii() and char.isprintable() else "?" for char in code),
        error="The text of the error could not be stored.",
        traceback=None,
    )
