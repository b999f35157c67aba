"""The values that inspection reads: one shape per thing, used by every surface. Field names are column names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal
from uuid import UUID

from ultijobs._queue.claims import Progress

__all__ = [
    "Cause",
    "Count",
    "DueGroup",
    "JobPage",
    "JobRow",
    "LeaseRow",
    "OutboxDepth",
    "QueueRow",
    "SlotRow",
    "Sort",
    "Stats",
    "Tally",
    "WaitingOn",
    "WorkerRow",
    "by_name",
]


class WaitingOn(StrEnum):
    """Why a job that lives is not running."""

    DELAY = "delay"
    BACKOFF = "backoff"
    PAUSED = "paused"
    NO_WORKER = "no-worker"
    SLOT = "slot"
    TENANT = "tenant"
    RATE = "rate"
    SLEEP = "sleep"
    EVENT = "event"
    BEHIND = "behind"


class Sort(StrEnum):
    """The order of a list of jobs: by creation, by due time, or by when they stopped."""

    NEWEST = "newest"
    OLDEST = "oldest"
    DUE = "due"
    STOPPED = "stopped"
    """Last stopped first; for dead and failed rows."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number and how far it can be trusted: `capped` means at least, `estimate` from statistics.

    As text a cut count of nothing is `?`: how many there are is not known, and `0+` would read as none.
    """

    value: int
    kind: Literal["exact", "capped", "estimate"] = "exact"

    def __str__(self) -> str:
        if self.kind == "capped":
            return f"{self.value:,}+" if self.value else "?"
        return f"~{self.value:,}" if self.kind == "estimate" else f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job as stored, without its input. `state` is text: a newer release's word is shown as it is."""

    id: UUID
    run_id: UUID
    name: str
    queue: str
    state: str
    attempt: int
    max_attempts: int
    priority: int
    idempotency_key: str | None
    tenant_id: str | None
    run_at: datetime
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    lease_no: int
    lease_until: datetime | None
    worker_id: str | None
    last_error: str | None
    error_code: str | None
    fingerprint: str | None
    stop_reason: str | None
    cancel_reason: str | None
    traceparent: str | None
    enqueued_by: str | None
    code_version: str | None
    running_step: str | None = None
    progress: Progress | None = None
    waiting_on: WaitingOn | None = None
    behind: UUID | None = None
    lane: str = ""


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs; `next` is the cursor of the page behind it, and None on the last one."""

    rows: list[JobRow]
    next: str | None
    as_of: datetime


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue: `state` is running, paused or unserved. Counts are capped."""

    queue: str
    state: Literal["running", "paused", "unserved"]
    ready: Count
    delayed: Count
    running: int
    suspended: Count
    dead: Count
    oldest_ready_ms: int | None
    capacity: int
    """Slots of live workers that serve it."""
    workers: int
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    resume_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutboxDepth:
    """What waits in the outbox, and what was set aside."""

    staged: Count
    oldest: datetime | None
    """When the oldest staged row was."""
    set_aside: Count
    oldest_set_aside: datetime | None = None
    """When the row that is set aside for longest was."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of jobs by queue and by state. A job is in exactly one state."""

    queues: list[QueueRow]
    totals: Mapping[str, Count]
    """One key per job state."""
    oldest_ready_ms: int | None
    as_of: datetime
    outbox: OutboxDepth | None = None
    """Of the whole store; None for a part of it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Stopped jobs that stopped for the same reason: stop reason and error fingerprint."""

    stop_reason: str | None
    fingerprint: str | None
    error_code: str | None
    error: str | None
    count: Count
    first_at: datetime
    last_at: datetime
    jobs: Mapping[str, int]
    queues: Mapping[str, int]
    tenants: int
    step: str | None
    sample: tuple[UUID, ...]
    retried: int = 0
    """Jobs of this cause that an act retried since."""
    died_again: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """Jobs that share one value: a tenant, a queue, a name."""

    value: str | None
    count: Count
    states: Mapping[str, int]
    """The same by state."""
    first_at: datetime
    """Of their stop, or of when they are due while they live."""
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DueGroup:
    """Due jobs of one queue and one name; of one tenant alone where `tenant` is set."""

    queue: str
    name: str
    tenant: str | None
    count: Count
    oldest: datetime
    """When the first of them was due."""
    limits: Mapping[str, object] = field(default_factory=dict[str, object])
    """The limits of the application that declares the name, as its catalogue has them; for a tenant's group."""


def by_name(groups: Iterable[DueGroup]) -> dict[str, Count]:
    """The groups that are of no one tenant, counted by name."""
    found: dict[str, Count] = {}
    for group in groups:
        if group.tenant is None:
            before = found.get(group.name, Count(0))
            exact = before.kind == group.count.kind == "exact"
            found[group.name] = Count(before.value + group.count.value, "exact" if exact else "capped")
    return found


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A claim in flight: who holds which job, in which step, until when. `expired` by the database's clock."""

    id: UUID
    run_id: UUID
    name: str
    queue: str
    tenant_id: str | None
    worker_id: str | None
    attempt: int
    max_attempts: int
    lease_no: int
    running_step: str | None
    started_at: datetime | None
    lease_until: datetime
    expired: bool
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class SlotRow:
    """A slot of a name with a cap in the fleet, and the claim that holds it."""

    slot: int
    job_id: UUID
    worker_id: str | None
    started_at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process; `state` is healthy, idle, wedged, draining, drained or gone.

    `drained` is one that was told to claim no more, and one that stopped in good order, which has a `stopped_at`;
    `gone` is one that fell silent.
    """

    worker_id: str
    instance: UUID
    host: str
    pid: int
    version: str
    code_version: str | None
    environment: str | None
    state: str
    queues: tuple[str, ...]
    names: tuple[str, ...]
    concurrency: int
    running: int
    free_slots: int
    started_at: datetime
    heartbeat_at: datetime
    claimed_at: datetime | None
    settled_at: datetime | None
    loop_lag_ms: int
    rss_bytes: int
    listening: bool
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    full_queues: tuple[str, ...] = ()
    """Queues at a limit of this process."""
    limited: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tenants at a limit of this process: milliseconds from the heartbeat on, 0 until a job of theirs ends."""
    stopped_at: datetime | None = None
    lease_ms: int = 30_000
    """For how long its claims hold, from each renewal on."""

    @property
    def ended(self) -> bool:
        """Its process is not there any more, or has not been heard of for a whole lease."""
        return self.state == "gone" or self.stopped_at is not None
