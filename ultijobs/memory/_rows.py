"""One job as the store in memory keeps it, and what else it keeps whole: pauses and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias
from uuid import UUID

from ultijobs._queue.claims import Progress
from ultijobs._queue.events import EventRow
from ultijobs._queue.records import JobState, UniqueMode
from ultijobs._queue.telling import WorkerBeat, WorkerOrder

__all__ = ["LIVE_STATES", "Found", "Key", "Pause", "Row", "StoredEvent", "Worker", "gone"]

Key: TypeAlias = tuple[str, str, str]

_CHANGED = (
    "state",
    "attempt",
    "key_held",
    "run_at",
    "due_at",
    "started_at",
    "finished_at",
    "worker_id",
    "stop_reason",
    "cancel_reason",
    "progress",
)
LIVE_STATES = frozenset({"ready", "running", "suspended"})
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
        return self.state in LIVE_STATES

    @property
    def moves(self) -> bool:
        """It is held for another store, or has gone there."""
        if self.state == "cancelled":
            return self.error_code == "X_JOB_MOVED"
        return self.cancel_reason is not None

    @property
    def claimable(self) -> bool:
        """It waits, and for nobody else's end; its time may be still to come."""
        return self.state in {"ready", "suspended"} and self.behind is None

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
class Found:
    """What a retry or a cancel found of a job before it changed it."""

    act: UUID
    kind: Literal["retry", "cancel"]
    at: datetime
    dropped: int
    lease_no: int
    before: Mapping[str, object]

    @classmethod
    def of(cls, row: Row, kind: Literal["retry", "cancel"], act: UUID, at: datetime, *, dropped: int = 0) -> Found:
        return cls(act, kind, at, dropped, row.lease_no, {name: getattr(row, name) for name in _CHANGED})


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


def gone(worker: Worker, now: datetime) -> bool:
    """Stopped, or silent for longer than its lease."""
    return worker.stopped_at is not None or now - worker.heartbeat_at > timedelta(milliseconds=worker.beat.lease_ms)
