"""Jobs as they cross the driver contract: their states, how they end, what enqueues and acts ask and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

__all__ = ["LIVE", "ActResult", "Enqueued", "JobState", "NewJob", "Outcome", "RequeueAsk", "StopReason", "UniqueMode"]


class JobState(StrEnum):
    """Where a job stands. `ready` means due; any future time is `delayed`, however it is stored."""

    READY = "ready"
    DELAYED = "delayed"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


LIVE = frozenset({JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.SUSPENDED})


class StopReason(StrEnum):
    """Why a job is `dead` or `failed`."""

    TERMINAL = "terminal"
    ATTEMPTS_EXHAUSTED = "attempts-exhausted"
    LEASE_EXHAUSTED = "lease-exhausted"
    CODE_CHANGED = "code-changed"


class Outcome(StrEnum):
    """How one attempt ended."""

    OK = "ok"
    RETRIED = "retried"
    DEAD = "dead"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    SUSPENDED = "suspended"
    RETURNED = "returned"


class UniqueMode(StrEnum):
    """Which rows an enqueue dedupes against; see `JobHandle`."""

    LIVE = "live"
    NOT_RUNNING = "not-running"
    RERUN = "rerun"


@dataclass(frozen=True, slots=True)
class NewJob:
    """One row to insert. `delay` is relative to the database's clock; it and `run_at` exclude each other."""

    id: UUID
    name: str
    input: str
    """JSON text of the validated input; it holds no U+0000 and no lone surrogate."""
    queue: str = "default"
    idempotency_key: str | None = None
    tenant_id: str | None = None
    max_attempts: int = 3
    priority: int = 0
    lane: str = ""
    unique: UniqueMode = UniqueMode.LIVE
    delay: timedelta | None = None
    run_at: datetime | None = None
    enqueued_by: str | None = None
    traceparent: str | None = None
    code_version: str | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What an enqueue answers: the row's ids, whether an existing row holds the key, and that row's state."""

    id: UUID
    run_id: UUID
    deduped: bool
    state: JobState


@dataclass(frozen=True, slots=True)
class RequeueAsk:
    """Retry of stopped rows. Allowed from dead, failed, cancelled; from done only with `allow_done`.

    `from_step` drops that record and every one started after it; `only_step` drops that one alone.
    """

    ids: tuple[UUID, ...]
    from_step: str | None = None
    only_step: str | None = None
    allow_done: bool = False
    tenant: str | None = None
    act: UUID | None = None
    """The row of the activity table under which what was found is kept, to be taken back; None keeps nothing."""


@dataclass(frozen=True, slots=True)
class ActResult:
    """What an act did to one row; `code` and `cause` say why it was refused."""

    id: UUID
    done: bool
    code: str | None = None
    cause: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
