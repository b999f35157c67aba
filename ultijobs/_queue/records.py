"""The values that cross the driver contract: states, requests, claims, settlements, steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from ultijobs._queue.telling import CatalogEntry, Signal, SignalKind, WorkerBeat, WorkerOrder

__all__ = [
    "LIVE",
    "ActResult",
    "Allowance",
    "AttemptRecord",
    "Beat",
    "BeatAnswer",
    "CatalogEntry",
    "ClaimAsk",
    "ClaimedJob",
    "CrashPolicy",
    "Enqueued",
    "JobState",
    "NewJob",
    "Outcome",
    "Progress",
    "Reaped",
    "RequeueAsk",
    "Settlement",
    "Signal",
    "SignalKind",
    "StepAnswer",
    "StepKind",
    "StepRecord",
    "StepStatus",
    "StepWrite",
    "StopReason",
    "UniqueMode",
    "Verdict",
    "WorkerBeat",
    "WorkerOrder",
]


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


class StepStatus(StrEnum):
    COMPLETED = "completed"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    FAILED = "failed"


class StepKind(StrEnum):
    RUN = "run"
    SLEEP = "sleep"
    WAIT = "wait"


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
class Allowance:
    """How many more jobs of a tenant may start: `left`, or `most` for one that is not in it."""

    most: int
    left: Mapping[str, int] = field(default_factory=dict[str, int])

    def of(self, tenant: str) -> int:
        return self.left.get(tenant, self.most)


@dataclass(frozen=True, slots=True)
class ClaimAsk:
    """What a worker can start now: free slots per queue (tried in this order), `limit` over all of them."""

    worker_id: str
    queues: Mapping[str, int]
    names: tuple[str, ...]
    limit: int
    lease: timedelta
    skip: frozenset[UUID] = frozenset()
    """Jobs that this process handed back as unreadable; at most a few."""
    caps: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of `names`, those that run at most so often at once in the fleet: each claim of one takes a slot."""
    tenants: Allowance | None = None
    """None: tenants are not limited here."""
    fair: frozenset[str] = frozenset()
    """Queues whose lanes take turns."""


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A slot of the fleet, by the claim that took it."""

    job_id: UUID
    lease_no: int
    queue: str


# Not frozen, as what is made for each job and step: setting the fields would cost more than all else a claim costs.
@dataclass(slots=True)
class ClaimedJob:
    id: UUID
    run_id: UUID
    name: str
    queue: str
    tenant_id: str | None
    lane: str
    priority: int
    attempt: int
    max_attempts: int
    claims: int
    """How often the row was claimed, this time included."""
    has_steps: bool
    """False when nothing is recorded for the run. A row that was claimed before may say True without any."""
    lease_no: int
    input: str
    unique: UniqueMode
    run_at: datetime
    created_at: datetime
    claimed_at: datetime
    """The database's clock at the claim."""
    enqueued_by: str | None = None
    traceparent: str | None = None
    code_version: str | None = None
    sent: float | None = None
    """`time.monotonic()` just before the claim itself went out; None: not before the call of `claim`."""


@dataclass(slots=True)
class Settlement:
    """The outcome of one claim, fenced by `lease_no`.

    `delay` (retried, returned) is relative to the database's clock; `run_at` (suspended) is absolute.
    """

    id: UUID
    run_id: UUID
    lease_no: int
    outcome: Outcome
    attempt: int
    worker_id: str
    queue: str
    unique: UniqueMode = UniqueMode.LIVE
    lane: str = ""
    delay: timedelta = timedelta(0)
    run_at: datetime | None = None
    stop_reason: StopReason | None = None
    error_code: str | None = None
    fingerprint: str | None = None
    error: str | None = None
    traceback: str | None = None


class Verdict(StrEnum):
    """What became of a settlement. Repeating one that has landed answers `SETTLED` again."""

    SETTLED = "settled"
    LOST = "lost"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Progress:
    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """One renewal. `error_code` marks an abandoned body: it becomes the attempt's error when the lease lapses."""

    id: UUID
    lease_no: int
    step: str | None = None
    progress: Progress | None = None
    error_code: str | None = None
    lane: str = ""
    """The job's lane: of one with a cap the slot is renewed too."""


class BeatAnswer(StrEnum):
    HELD = "held"
    LOST = "lost"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One recorded step of a run. `status` and `kind` stay text, so that a newer release's word can be told."""

    run_id: UUID
    name: str
    kind: str
    status: str
    output: str | None
    error: str | None
    position: int
    started_at: datetime
    completed_at: datetime | None
    wake_at: datetime | None
    tries: int
    lease_no: int
    event: str | None = None
    match: str | None = None


@dataclass(slots=True)
class StepWrite:
    """A record to store for the claim `lease_no`. A completed record is immutable: a second write changes nothing."""

    job_id: UUID
    run_id: UUID
    lease_no: int
    name: str
    kind: StepKind
    status: StepStatus
    position: int
    output: str | None = None
    error: str | None = None
    tries: int = 1
    took: timedelta = timedelta(0)
    """`started_at` becomes the database's now minus this, where no earlier start is recorded."""
    wake_in: timedelta | None = None
    event: str | None = None
    match: str | None = None


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """`held` is false when the claim is not ours any more; then nothing was written."""

    held: bool
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    run_id: UUID
    job_id: UUID
    attempt: int
    lease_no: int
    worker_id: str | None
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    error_code: str | None
    error: str | None
    traceback: str | None


@dataclass(frozen=True, slots=True)
class CrashPolicy:
    """How a job whose lease lapsed is delivered again: the back-off of its retry policy, without jitter."""

    name: str
    backoff: str
    delay: timedelta
    max_delay: timedelta
    dead_letter: bool = True


@dataclass(frozen=True, slots=True)
class Reaped:
    """A claim whose lease lapsed, and what was done: `ready`/`delayed` again, or `dead`/`failed`.

    `noted` is False when the claim's own worker had told its loss before, see `TelemetryStore.note_lost`.
    """

    id: UUID
    run_id: UUID
    name: str
    queue: str
    lease_no: int
    attempt: int
    worker_id: str | None
    state: JobState
    noted: bool = True


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


@dataclass(frozen=True, slots=True)
class ActResult:
    """What an act did to one row; `code` and `cause` say why it was refused."""

    id: UUID
    done: bool
    code: str | None = None
    cause: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
