"""Ending claims: what still holds its lease number is settled, everything else is told what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ultijobs._queue.claims import Settlement, Verdict
from ultijobs._queue.lanes import capped_name
from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.telling import SignalKind
from ultijobs.memory._fates import fate_of
from ultijobs.memory._rows import Row
from ultijobs.memory._store import Store

__all__ = ["settle"]


def settle(store: Store, settlements: Sequence[Settlement]) -> list[Verdict]:
    return [_settle(store, settlement) for settlement in settlements]


def _settle(store: Store, given: Settlement) -> Verdict:
    row = store.jobs.get(given.id)
    if row is None or not row.holds(given.lease_no):
        return _verdict_of_a_miss(store, given)
    now = store.now()
    if given.outcome not in {Outcome.OK, Outcome.SUSPENDED}:
        store.record_attempt(
            row,
            given.outcome,
            now,
            worker_id=row.worker_id,
            error_code=given.error_code,
            error=given.error,
            traceback=given.traceback,
        )
    _apply(store, row, given, now)
    return Verdict.SETTLED


def _apply(store: Store, row: Row, given: Settlement, now: datetime) -> None:
    match given.outcome:
        case Outcome.OK:
            row.last_error = row.error_code = row.fingerprint = None
            store.finish(row, JobState.DONE, now)
        case Outcome.DEAD | Outcome.FAILED:
            _keep_error(row, given)
            row.stop_reason = given.stop_reason
            row.worker_id = None
            store.finish(row, JobState.DEAD if given.outcome is Outcome.DEAD else JobState.FAILED, now)
        case Outcome.CANCELLED:
            row.worker_id = None
            store.finish(row, JobState.CANCELLED, now)
        case Outcome.SUSPENDED:
            woken = row.woken == row.lease_no
            _wait_again(row, "suspended", now if woken else given.run_at or now + given.delay, now)
            row.attempt = max(row.attempt - 1, 0)
        case Outcome.RETURNED:
            _keep_error(row, given)
            _wait_again(row, "ready", now + given.delay, now)
            row.attempt = max(row.attempt - 1, 0)
        case Outcome.RETRIED | Outcome.LOST:
            _keep_error(row, given)
            _wait_again(row, "ready", now + given.delay, now)
    store.waiting.add(row)
    if row.state == "ready" or capped_name(row.lane) is not None:
        store.signals.send(SignalKind.QUEUE, row.queue)


def _wait_again(row: Row, state: str, run_at: datetime, now: datetime) -> None:
    row.state = state
    row.run_at = max(run_at, now)
    row.updated_at = now
    row.worker_id = None
    row.release()


def _keep_error(row: Row, given: Settlement) -> None:
    """The error told last; what a settlement does not tell stays as it is."""
    row.last_error = row.last_error if given.error is None else given.error
    row.error_code = row.error_code if given.error_code is None else given.error_code
    row.fingerprint = row.fingerprint if given.fingerprint is None else given.fingerprint


def _verdict_of_a_miss(store: Store, given: Settlement) -> Verdict:
    """A repeated settlement finds its own traces."""
    fate = fate_of(store, given.id, given.lease_no)
    if fate.cancelled:
        return Verdict.CANCELLED
    return Verdict.SETTLED if fate.landed(given.outcome) else Verdict.LOST
