"""What operators do to jobs: retry and cancel, row by row, each with its own success or refusal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ultijobs._queue.claims import HeldSlot
from ultijobs._queue.records import ActResult, JobState, Outcome, RequeueAsk
from ultijobs._queue.steps import StepRecord, StepStatus
from ultijobs._queue.telling import SignalKind
from ultijobs.errors import Invariant
from ultijobs.memory._rows import Found, Row
from ultijobs.memory._steps import drop_step, steps_of
from ultijobs.memory._store import Store

__all__ = ["cancel", "let_go", "requeue"]

_STOPPED = frozenset({"dead", "failed", "cancelled"})


def requeue(store: Store, ask: RequeueAsk) -> list[ActResult]:
    if ask.from_step is not None and ask.only_step is not None:
        raise Invariant("from_step and only_step exclude each other", fix="give one of them")
    now = store.now()
    return [_requeue(store, job_id, ask, now) for job_id in ask.ids]


def cancel(
    store: Store, ids: Sequence[UUID], reason: str | None, tenant: str | None, act: UUID | None
) -> list[ActResult]:
    now = store.now()
    return [_cancel(store, job_id, reason, tenant, now, act) for job_id in ids]


def _requeue(store: Store, id: UUID, ask: RequeueAsk, now: datetime) -> ActResult:
    row = _visible(store, id, ask.tenant)
    if row is None:
        return _unknown(id)
    if row.moves:
        has = "is" if row.id in store.jobs else "has"
        return _refused(id, "X_JOB_MOVED", f"job {id} {has} {row.cancel_reason}: it goes on there")
    if row.state not in _STOPPED and not (ask.allow_done and row.state == "done"):
        state = row.shown_state(now)
        return _refused(
            id, "X_JOB_NOT_RETRYABLE", f"job {id} is {state}; only a stopped job can be retried", state=state
        )
    known = steps_of(store, row.run_id)
    named = ask.from_step if ask.from_step is not None else ask.only_step
    if named is not None and all(step.name != named for step in known):
        names = [step.name for step in known]
        listed = ", ".join(names) if names else "none"
        return _refused(id, "X_STEP_UNKNOWN", f"run {row.run_id} has no step {named!r}; it has: {listed}", known=names)
    twin = store.twin_in_the_way(row)
    if twin is not None:
        state = twin.shown_state(now)
        return _refused(
            id,
            "X_JOB_DUPLICATE",
            f"job {twin.id} is {state} and has the same key",
            existing_id=str(twin.id),
            state=state,
        )
    if named is not None:
        _drop_steps(store, row, known, named, only=ask.only_step is not None)
    _drop_over(store, row, now)
    store.found.pop(id, None)
    if ask.act is not None:
        dropped = len(known) - len(steps_of(store, row.run_id))
        store.found[id] = Found.of(row, "retry", ask.act, now, dropped=dropped)
    _start_over(store, row, now)
    return ActResult(id, done=True)


def _drop_steps(store: Store, row: Row, known: list[StepRecord], named: str, *, only: bool) -> None:
    first = next(step for step in known if step.name == named)
    for step in known:
        later = (step.started_at, step.position) >= (first.started_at, first.position)
        if step.name == named or (later and not only):
            drop_step(store, row.run_id, step.name)


def _drop_over(store: Store, row: Row, now: datetime) -> None:
    """A wait whose deadline is over would end the run at once; it starts over."""
    for step in steps_of(store, row.run_id):
        if step.status == StepStatus.WAITING and step.wake_at is not None and step.wake_at <= now:
            drop_step(store, row.run_id, step.name)


def _start_over(store: Store, row: Row, now: datetime) -> None:
    row.state = "ready"
    row.attempt = 0
    row.key_held = True
    row.run_at = row.due_at = row.updated_at = now
    row.started_at = row.finished_at = None
    row.worker_id = row.stop_reason = row.cancel_reason = None
    row.progress = None
    store.put(row)
    store.signals.send(SignalKind.QUEUE, row.queue)


def _cancel(
    store: Store, id: UUID, reason: str | None, tenant: str | None, now: datetime, act: UUID | None
) -> ActResult:
    row = _visible(store, id, tenant)
    if row is None:
        return _unknown(id)
    if not row.live:
        cause = f"job {id} is {row.state}; only a live job can be cancelled"
        return _refused(id, "X_JOB_NOT_CANCELLABLE", cause, state=row.state)
    if row.moves:
        return _refused(id, "X_JOB_MOVED", f"job {id} is {row.cancel_reason}: finish that move, and cancel it there")
    if act is not None:
        store.found[id] = Found.of(row, "cancel", act, now)
    if row.lease_until is not None:
        store.slots.keep(row, row.lease_until)
        store.record_attempt(row, Outcome.CANCELLED, now, worker_id=row.worker_id, error=reason)
        store.signals.send(SignalKind.CANCEL, str(id))
    row.cancel_reason = reason
    row.worker_id = None
    store.finish(row, JobState.CANCELLED, now)
    return ActResult(id, done=True)


def let_go(store: Store, slot: HeldSlot) -> bool:
    freed = store.slots.let_go(slot.job_id, slot.lease_no)
    if freed:
        store.signals.send(SignalKind.QUEUE, slot.queue)
    return freed


def _visible(store: Store, id: UUID, tenant: str | None) -> Row | None:
    row = store.find(id)
    return None if row is None or (tenant is not None and row.tenant_id != tenant) else row


def _unknown(id: UUID) -> ActResult:
    return _refused(id, "X_JOB_UNKNOWN", f"there is no job {id}")


def _refused(id: UUID, code: str, cause: str, **meta: object) -> ActResult:
    return ActResult(id, done=False, code=code, cause=cause, meta=meta)
