"""Moves of a queue in memory: held rows wait behind themselves, as on Postgres."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._ids import new_id
from ultijobs._queue.claims import Progress
from ultijobs._queue.events import EventRow
from ultijobs._queue.moving import Holding, MovedEvent, MovedJob, MovedStep, Place
from ultijobs._queue.records import ActResult, JobState, UniqueMode
from ultijobs._queue.steps import StepRecord
from ultijobs._queue.telling import SignalKind
from ultijobs.memory._events import deliver
from ultijobs.memory._rows import Row, StoredEvent
from ultijobs.memory._steps import steps_of
from ultijobs.memory._store import Store

__all__ = ["MemoryMoves"]

_MOVABLE: Final = frozenset({"ready", "suspended", "dead", "failed"})
_COPIED: Final = tuple(
    f.name for f in fields(MovedJob) if f.name not in {"steps", "attempts", "unique_mode", "progress", "behind"}
)


class MemoryMoves:
    """`MoveStore` of a store in memory: a source for tests, and a target for none but them."""

    __slots__ = ("_identity", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._identity = new_id().hex[-12:]

    async def place(self) -> Place:
        return Place(self._identity, durable=False)

    async def hold(self, ids: Sequence[UUID], *, to: str, identity: str) -> Holding:
        with self._store.lock:
            rows = self._family(ids)
            sign = _sign(identity)
            past = [self._store.done[job] for job in dict.fromkeys(ids) if job in self._store.done]
            refused = {
                row.id: _refused(row.id, "X_JOB_NOT_MOVABLE", f"job {row.id} is {row.state} by now")
                for row in past
                if not (row.cancel_reason or "").endswith(sign)
            }
            refused |= {row.id: cause for row in rows if (cause := _unmovable(row, sign)) is not None}
            present = {row.id for row in rows}
            for row in rows:
                if row.behind not in {None, row.id} and (row.behind in refused or row.behind not in present):
                    stays = f"job {row.id} waits behind job {row.behind}, which stays"
                    refused[row.id] = _refused(row.id, "X_JOB_NOT_MOVABLE", stays)
            taken = [row for row in rows if row.id not in refused]
            for row in taken:
                self._mark(row, f"moving to {to}{sign}")
            return Holding([self._whole(row) for row in taken], list(refused.values()))

    def _family(self, ids: Sequence[UUID]) -> list[Row]:
        wanted = set(ids)
        for job in ids:
            row = self._store.jobs.get(job)
            if row is not None and row.behind is not None:
                wanted.add(row.behind)
            wanted |= self._store.followers.get(job, set())
        return [self._store.jobs[job] for job in sorted(wanted) if job in self._store.jobs]

    def _mark(self, row: Row, reason: str) -> None:
        if row.cancel_reason is None:
            row.behind = row.behind or row.id
            row.cancel_reason = reason

    async def receive(self, jobs: Sequence[MovedJob]) -> list[ActResult]:
        with self._store.lock:
            return [self._receive(job) for job in jobs]

    def _receive(self, job: MovedJob) -> ActResult:
        store = self._store
        if job.id in store.done and store.done[job.id].moves:
            del store.done[job.id]
            store.steps.pop(job.run_id, None)
            store.attempts.pop(job.run_id, None)
        if store.find(job.id) is not None:
            return ActResult(job.id, done=True)
        row = _row(job)
        if row.key is not None and row.live and row.key_held:
            twin = next((twin for twin in store.live_twins(row.key) if twin.key_held), None)
            if twin is not None:
                cause = f"job {twin.id} is live there and has the same key"
                return ActResult(
                    job.id, done=False, code="X_JOB_DUPLICATE", cause=cause, meta={"existing_id": str(twin.id)}
                )
        store.lease_no = max(store.lease_no, job.lease_no)
        store.steps[job.run_id] = {step.name: _step(job.run_id, step) for step in job.steps}
        store.taken |= {(job.run_id, step.name): step.event_id for step in job.steps if step.event_id is not None}
        store.attempts[job.run_id] = {attempt.lease_no: attempt for attempt in job.attempts}
        store.put(row)
        store.signals.send(SignalKind.QUEUE, row.queue)
        return ActResult(job.id, done=True)

    async def present(self, ids: Sequence[UUID]) -> Mapping[UUID, MovedJob]:
        with self._store.lock:
            return {job: self._whole(row) for job in ids if (row := self._store.find(job)) is not None}

    async def depart(self, ids: Sequence[UUID], *, to: str, identity: str) -> list[ActResult]:
        with self._store.lock:
            return [self._depart(job, to, _sign(identity)) for job in ids]

    def _depart(self, id: UUID, to: str, sign: str) -> ActResult:
        row = self._store.find(id)
        if row is None or not (row.cancel_reason or "").endswith(sign):
            return _refused(id, "X_JOB_NOT_MOVABLE", f"job {id} is not held for this move any more")
        if id in self._store.jobs:
            row.error_code, row.cancel_reason, row.worker_id = "X_JOB_MOVED", f"moved to {to}{sign}", None
            # Those behind it leave with it, each by its own word: they are not let go here.
            self._store.followers.pop(id, None)
            self._store.finish(row, JobState.CANCELLED, self._store.now())
        return ActResult(id, done=True)

    async def let_go(self, ids: Sequence[UUID], *, identity: str) -> None:
        with self._store.lock:
            for job in ids:
                row = self._store.jobs.get(job)
                if row is not None and (row.cancel_reason or "").endswith(_sign(identity)):
                    row.behind = None if row.behind == row.id else row.behind
                    row.cancel_reason = None
                    self._store.put(row)
                    self._store.signals.send(SignalKind.QUEUE, row.queue)

    async def events(self, *, since: datetime, after: UUID | None = None, limit: int = 500) -> list[MovedEvent]:
        with self._store.lock:
            now = self._store.now()
            stored = sorted(self._store.events.values(), key=lambda event: event.row.id)
            return [
                MovedEvent(**asdict(event.row), payload=event.payload)
                for event in stored
                if event.row.published_at >= since
                and event.row.expires_at > now
                and (after is None or event.row.id > after)
            ][:limit]

    async def receive_events(self, events: Sequence[MovedEvent]) -> int:
        with self._store.lock:
            fresh = [_stored(event) for event in events if event.id not in self._store.events]
            deliver(self._store, fresh)
            return len(fresh)

    def _whole(self, row: Row) -> MovedJob:
        run = row.run_id
        return MovedJob(
            **{name: getattr(row, name) for name in _COPIED},
            unique_mode=row.unique.value,
            progress=None if row.progress is None else json.dumps(asdict(row.progress)),
            behind=None if row.behind == row.id else row.behind,
            steps=tuple(_moved(step, self._store.taken.get((run, step.name))) for step in steps_of(self._store, run)),
            attempts=tuple(self._store.attempts.get(run, {})[no] for no in sorted(self._store.attempts.get(run, {}))),
        )


def _row(job: MovedJob) -> Row:
    row = Row(
        **{name: getattr(job, name) for name in _COPIED},
        unique=UniqueMode(job.unique_mode),
        behind=job.behind,
    )
    if job.progress is not None:
        row.progress = Progress(**json.loads(job.progress))
    return row


def _stored(event: MovedEvent) -> StoredEvent:
    told = asdict(event)
    payload = told.pop("payload")
    return StoredEvent(EventRow(**told), payload)


def _step(run_id: UUID, step: MovedStep) -> StepRecord:
    told = {f.name: getattr(step, f.name) for f in fields(MovedStep) if f.name != "event_id"}
    return StepRecord(run_id=run_id, **told)


def _moved(step: StepRecord, event_id: UUID | None) -> MovedStep:
    told = {f.name: getattr(step, f.name) for f in fields(MovedStep) if f.name != "event_id"}
    return MovedStep(event_id=event_id, **told)


def _sign(identity: str) -> str:
    return f" [{identity}]"


def _unmovable(row: Row, sign: str) -> ActResult | None:
    if row.lease_until is not None or row.state not in _MOVABLE:
        return _refused(row.id, "X_JOB_NOT_MOVABLE", f"job {row.id} is {row.state}: it stays until it ends")
    if row.cancel_reason is not None and not row.cancel_reason.endswith(sign):
        return _refused(row.id, "X_JOB_MOVED", f"job {row.id} is {row.cancel_reason}: finish that move first")
    return None


def _refused(id: UUID, code: str, cause: str) -> ActResult:
    return ActResult(id, done=False, code=code, cause=cause)
