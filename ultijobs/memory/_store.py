"""What a queue in memory consists of: the rows as Postgres has them, one lock, one clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from ultijobs._clock import Clock
from ultijobs._queue.events import EventRow
from ultijobs._queue.records import (
    AttemptRecord,
    CatalogEntry,
    JobState,
    Outcome,
    Progress,
    SignalKind,
    StepRecord,
    UniqueMode,
    WorkerBeat,
    WorkerOrder,
)
from ultijobs._queue.views import ActivityRow
from ultijobs.memory._signals import Signals

__all__ = ["HELD_STATES", "Key", "Pause", "Row", "Store", "StoredEvent", "Worker", "gone"]

Key = tuple[str, str, str]

HELD_STATES = frozenset({"ready", "running", "suspended"})
"""Stored states of a live row; `delayed` is derived from `run_at`."""


@dataclass(slots=True)
class Row:
    """One job as stored. `state` is never `delayed`; `lease_until` is not None exactly while a claim holds it."""

    id: UUID
    run_id: UUID
    name: str
    queue: str
    tenant_id: str | None
    idempotency_key: str | None
    unique: UniqueMode
    lane: str
    priority: int
    max_attempts: int
    input: str
    run_at: datetime
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    enqueued_by: str | None
    traceparent: str | None
    code_version: str | None
    state: str = "ready"
    key_held: bool = True
    behind: UUID | None = None
    attempt: int = 0
    claims: int = 0
    lease_no: int = 0
    lease_until: datetime | None = None
    worker_id: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    stop_reason: str | None = None
    error_code: str | None = None
    fingerprint: str | None = None
    last_error: str | None = None
    cancel_reason: str | None = None
    running_step: str | None = None
    progress: Progress | None = None
    woken: int | None = None
    """The claim under which an event came that the run waits for."""
    abandoned: str | None = None
    """The error code of a body that outlived its deadline, told by the renewals of its lease."""

    @property
    def key(self) -> Key | None:
        if self.idempotency_key is None:
            return None
        return (self.name, self.tenant_id or "", self.idempotency_key)

    @property
    def live(self) -> bool:
        return self.state in HELD_STATES

    def shown_state(self, now: datetime) -> str:
        if self.state == "ready" and self.run_at > now:
            return JobState.DELAYED.value
        return self.state

    def holds(self, lease_no: int) -> bool:
        return self.lease_no == lease_no and self.lease_until is not None

    def release(self) -> None:
        """Ends the claim; its number stays, so that it can be recognised."""
        self.lease_until = None
        self.running_step = None
        self.abandoned = None


@dataclass(frozen=True, slots=True)
class Pause:
    at: datetime
    by: str
    reason: str | None
    resume_at: datetime | None


@dataclass(slots=True)
class Worker:
    beat: WorkerBeat
    started_at: datetime
    heartbeat_at: datetime
    claimed_at: datetime | None = None
    settled_at: datetime | None = None
    stopped_at: datetime | None = None
    control: WorkerOrder = WorkerOrder.NONE


@dataclass(frozen=True, slots=True)
class StoredEvent:
    row: EventRow
    payload: str


@dataclass(slots=True)
class Store:
    """The tables. Every reader and writer holds `lock`; nothing awaits while holding it."""

    clock: Clock
    lock: threading.RLock = field(default_factory=threading.RLock)
    jobs: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    """What is live, dead or failed."""
    done: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    """What is done or cancelled."""
    by_key: dict[Key, set[UUID]] = field(default_factory=dict[Key, set[UUID]])
    """Rows of `jobs` by key, whatever their state."""
    followers: dict[UUID, set[UUID]] = field(default_factory=dict[UUID, set[UUID]])
    """Who waits behind a row for its end."""
    steps: dict[UUID, dict[str, StepRecord]] = field(default_factory=dict[UUID, dict[str, StepRecord]])
    events: dict[UUID, StoredEvent] = field(default_factory=dict[UUID, StoredEvent])
    taken: dict[tuple[UUID, str], UUID] = field(default_factory=dict[tuple[UUID, str], UUID])
    """By run and step, the event that completed it."""
    attempts: dict[UUID, dict[int, AttemptRecord]] = field(default_factory=dict[UUID, dict[int, AttemptRecord]])
    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])
    workers: dict[UUID, Worker] = field(default_factory=dict[UUID, Worker])
    catalog: dict[tuple[str, str], CatalogEntry] = field(default_factory=dict[tuple[str, str], CatalogEntry])
    activity: dict[UUID, ActivityRow] = field(default_factory=dict[UUID, ActivityRow])
    lease_no: int = 0
    signals: Signals = field(default_factory=Signals)

    def now(self) -> datetime:
        return self.clock.now()

    def next_lease_no(self) -> int:
        self.lease_no += 1
        return self.lease_no

    # -- rows ------------------------------------------------------------------------------------------
    def put(self, row: Row) -> None:
        """Files a row among those that live or have stopped."""
        self.done.pop(row.id, None)
        self.jobs[row.id] = row
        if row.key is not None:
            self.by_key.setdefault(row.key, set()).add(row.id)
        if row.behind is not None:
            self.followers.setdefault(row.behind, set()).add(row.id)

    def finish(self, row: Row, state: JobState, now: datetime) -> None:
        """Ends a row for good: `done` and `cancelled` move to history, `dead` and `failed` stay where they are."""
        row.state = state.value
        row.finished_at = now
        row.updated_at = now
        row.behind = None
        row.release()
        if state in {JobState.DONE, JobState.CANCELLED}:
            del self.jobs[row.id]
            self.done[row.id] = row
            if row.key is not None:
                ids = self.by_key[row.key]
                ids.discard(row.id)
                if not ids:
                    del self.by_key[row.key]
        self.free_twins(row.id, now)

    def free_twins(self, ended: UUID, now: datetime) -> None:
        """Lets those be claimed that waited for `ended`."""
        for follower in self.followers.pop(ended, ()):
            row = self.jobs.get(follower)
            if row is not None and row.behind == ended:
                row.behind = None
                row.run_at = max(row.run_at, now)
                row.updated_at = now
                self.signals.send(SignalKind.QUEUE, row.queue)

    def find(self, id: UUID) -> Row | None:
        return self.jobs.get(id) or self.done.get(id)

    def rows(self) -> Iterator[Row]:
        yield from self.jobs.values()
        yield from self.done.values()

    def live_twins(self, key: Key, besides: UUID | None = None) -> list[Row]:
        """Live rows of a key, oldest id first."""
        return sorted(
            (row for twin in self.by_key.get(key, ()) if twin != besides and (row := self.jobs[twin]).live),
            key=lambda row: row.id,
        )

    # -- attempts and pauses ---------------------------------------------------------------------------
    def record_attempt(
        self,
        row: Row,
        outcome: Outcome,
        now: datetime,
        *,
        worker_id: str | None,
        error_code: str | None = None,
        error: str | None = None,
        traceback: str | None = None,
    ) -> None:
        self.attempts.setdefault(row.run_id, {})[row.lease_no] = AttemptRecord(
            run_id=row.run_id,
            job_id=row.id,
            attempt=row.attempt,
            lease_no=row.lease_no,
            worker_id=worker_id,
            outcome=outcome.value,
            started_at=row.started_at,
            ended_at=now,
            error_code=error_code,
            error=error,
            traceback=traceback,
        )

    def pause_of(self, queue: str, now: datetime) -> Pause | None:
        """The pause in force; one whose time is over is none."""
        pause = self.pauses.get(queue)
        if pause is None or (pause.resume_at is not None and pause.resume_at <= now):
            return None
        return pause

    def live_workers(self, now: datetime) -> list[Worker]:
        return [worker for worker in self.workers.values() if not gone(worker, now)]

    def serving(self, queue: str, now: datetime) -> list[WorkerBeat]:
        """Of those who claim from a queue, the last word: they live, and they do not drain."""
        beats = [worker.beat for worker in self.live_workers(now)]
        return [beat for beat in beats if beat.state == "running" and queue in beat.queues]


def gone(worker: Worker, now: datetime) -> bool:
    """Stopped, or silent for longer than its lease."""
    return worker.stopped_at is not None or now - worker.heartbeat_at > timedelta(milliseconds=worker.beat.lease_ms)
