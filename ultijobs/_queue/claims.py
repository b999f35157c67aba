"""A claim from ask to outcome: what a worker may start, what it holds, renews and settles, and what lapses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from ultijobs._queue.records import JobState, Outcome, StopReason, UniqueMode

__all__ = [
    "Allowance",
    "Beat",
    "BeatAnswer",
    "ClaimAsk",
    "ClaimedJob",
    "CrashPolicy",
    "HeldSlot",
    "Progress",
    "Reaped",
    "Settlement",
    "Verdict",
]


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
    """A job as its claim found it; `lease_no` fences everything that the claim may write."""

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
    """What a handler reported last: `done` of `total`, in units of its own; None for a total that it does not know."""

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
    """What a renewal found: the claim is held on, was lost, or was ended by a cancel."""

    HELD = "held"
    LOST = "lost"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CrashPolicy:
    """How a job whose lease lapsed is delivered again: the backoff of its retry policy, without jitter."""

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
