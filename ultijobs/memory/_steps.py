"""Step records: fenced by the claim, and final once completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from ultijobs._queue.steps import StepAnswer, StepRecord, StepStatus, StepWrite
from ultijobs.memory._store import Store

__all__ = ["drop_step", "load_steps", "record_steps", "steps_of"]


def steps_of(store: Store, run_id: UUID) -> list[StepRecord]:
    """The records of a run by position."""
    found = store.steps.get(run_id, {}).values()
    return sorted(found, key=lambda step: (step.position, step.started_at, step.name))


def drop_step(store: Store, run_id: UUID, name: str) -> None:
    """Removes a record, and with it that its event was had."""
    del store.steps[run_id][name]
    store.taken.pop((run_id, name), None)


def load_steps(store: Store, run_ids: Sequence[UUID]) -> Mapping[UUID, list[StepRecord]]:
    return {run_id: steps_of(store, run_id) for run_id in run_ids}


def record_steps(store: Store, writes: Sequence[StepWrite]) -> list[StepAnswer]:
    return [_record(store, write) for write in writes]


def _record(store: Store, write: StepWrite) -> StepAnswer:
    row = store.jobs.get(write.job_id)
    if row is None or not row.holds(write.lease_no):
        return StepAnswer(held=False)
    known = store.steps.setdefault(write.run_id, {})
    before = known.get(write.name)
    if before is not None and before.status == StepStatus.COMPLETED:
        return StepAnswer(held=True, wake_at=before.wake_at)
    now = store.now()
    wake_at = None if write.wake_in is None else now + write.wake_in
    if before is not None and before.wake_at is not None:
        wake_at = before.wake_at
    known[write.name] = StepRecord(
        run_id=write.run_id,
        name=write.name,
        kind=write.kind.value,
        status=write.status.value,
        output=write.output,
        error=write.error,
        position=write.position,
        started_at=now - write.took if before is None else before.started_at,
        completed_at=now if write.status is StepStatus.COMPLETED else None,
        wake_at=wake_at,
        tries=write.tries,
        lease_no=write.lease_no,
        event=write.event,
        match=write.match,
    )
    return StepAnswer(held=True, wake_at=wake_at)
