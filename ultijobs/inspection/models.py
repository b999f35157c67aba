"""What inspection answers beyond the stored rows: details, reasons, incidents, plans and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

from ultijobs._queue.backfills import PassRow
from ultijobs._queue.steps import AttemptRecord, StepRecord
from ultijobs._queue.views import Cause, Count, JobRow, QueueRow, Stats, WaitingOn
from ultijobs._queue.where import Where
from ultijobs.inspection.starting import Forecast

__all__ = [
    "LOOKED_AT",
    "ActOutcome",
    "Action",
    "JobDetail",
    "Overview",
    "Plan",
    "PlanOptions",
    "Published",
    "Refusal",
    "Stuck",
    "StuckKind",
    "Target",
    "Why",
]

LOOKED_AT: Final = 200
"""Rows that a plan reads one by one."""


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job whole: its row, the steps of its run in order of their position, and every recorded attempt."""

    row: JobRow
    steps: list[StepRecord]
    attempts: list[AttemptRecord]
    retry_delays_ms: list[int]
    """Delays still to come, without jitter, by the catalogue's policy; empty when the name is not in it."""
    input: str | None = None
    """JSON text, redacted; None unless asked for."""
    backfill: PassRow | None = None
    """The line of the ledger, of a job that is a pass of a backfill."""


@dataclass(frozen=True, slots=True)
class Published:
    """An event that was published, and how many waiting runs it made due."""

    id: UUID
    name: str
    key: str | None
    woken: int
    activity_id: UUID


@dataclass(frozen=True, slots=True)
class Why:
    """Why a job is where it is; `waiting_on` is None for one that runs or has stopped."""

    id: UUID
    state: str
    waiting_on: WaitingOn | None
    since: datetime
    holder: str | None
    """Who or what it waits for: a worker, a queue with its reason, another job."""
    frees: str
    """What would free it, as one line; a command where there is one."""


class StuckKind(StrEnum):
    """What a line of an incident is about; the runbook has a section for each."""

    DEAD = "dead letters"
    STARVING = "queue starving"
    PAUSED = "queue paused"
    LEASE = "lease expired"
    NO_WORKER = "no worker"
    CRON = "cron late"
    OUTBOX = "outbox"
    BACKFILL = "backfill stalled"
    THROTTLED = "throttled"
    FAILED_DETECTOR = "unknown"


@dataclass(frozen=True, slots=True)
class Stuck:
    """One line of an incident: what is stuck, why, since when, who holds it, and what to do."""

    key: str
    """Stable across refreshes."""
    kind: StuckKind
    severity: Literal[0, 1, 2]
    """2 is urgent, 1 wants a look, 0 is for information."""
    count: Count
    why: str
    since: datetime | None
    last: datetime | None
    held_by: str | None
    where: str | None
    """The filter that lists it."""
    queue: str | None = None
    cause: Cause | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """What is stuck, the worst first, and the queue in figures, all as of one moment of the database's clock.

    `running` counts held leases, `capacity` the slots of live `workers`; `oldest_ready_ms` is None when nothing waits.
    """

    as_of: datetime
    stats: Stats
    stuck: list[Stuck]
    running: int
    capacity: int
    workers: int
    oldest_ready_ms: int | None
    queues: list[QueueRow]
    unserved_names: Mapping[str, Count] = field(default_factory=dict[str, Count])
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """What each live worker process has settled since its start, by instance: done, retried, dead, lost, cancelled."""


class Action(StrEnum):
    """What an operator can do; every act is planned first."""

    RETRY = "retry"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN_WORKER = "drain-worker"
    RESUME_WORKER = "resume-worker"
    DRAIN_QUEUE = "drain-queue"
    """Moves jobs to another database."""
    START_BACKFILL = "start-backfill"
    FORCE_BACKFILL = "force-backfill"
    """A new pass although one has completed."""
    OUTBOX_RETRY = "outbox-retry"
    """Stages again what was set aside; its ids are those of outbox rows."""
    UNDO = "undo"
    """Takes a retry or a cancel back, as far as nothing has come of it."""
    RUN_TASK = "run-task"
    """Planned and applied where the application's code is: it alone knows the jobs."""


@dataclass(frozen=True, slots=True)
class Target:
    """What an act is for: exactly one of a filter, ids, a queue, a worker, a backfill, a task, an act."""

    where: Where | None = None
    text: str | None = None
    """The filter as written, for the equivalent command."""
    ids: tuple[UUID, ...] = ()
    queue: str | None = None
    worker: str | None = None
    backfill: str | None = None
    task: str | None = None
    act: UUID | None = None
    """A row of the activity table, to be taken back."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How an act is carried out, and which rows it leaves alone."""

    from_step: str | None = None
    only_step: str | None = None
    allow_done: bool = False
    reason: str | None = None
    duration: timedelta | None = None
    """Of a pause: resumes by itself after it."""
    tenant: str | None = None
    as_of: datetime | None = None
    """Rows touched later are left alone; the database's now when None."""
    limit: int | None = None
    """At most this many rows, oldest id first: a canary is a plan with limit 1."""
    exit: bool = False
    """Of a drained worker: it ends instead of standing by."""
    to: str | None = field(default=None, repr=False)
    """Of a drained queue: the address of the database that its jobs move to; it may hold a password."""
    to_schema: str = "public"
    batch: int = 500
    pause: timedelta = timedelta(0)
    """Between batches."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that an act leaves as it is: `fix` is the line that fixes it, where the code's own is not enough."""

    id: UUID | None
    code: str
    cause: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an act would do. Made first, shown, then applied: what arrives after `as_of` is not touched."""

    action: Action
    target: Target
    options: PlanOptions
    as_of: datetime
    matched: Count
    queues: Mapping[str, int]
    tenants: int
    samples: tuple[UUID, ...]
    refused: tuple[Refusal, ...]
    """Of the rows looked at (the first 200): those that would be refused, and why."""
    reruns: tuple[str, ...]
    """Steps that a retry runs again, as far as the sample tells."""
    replays: tuple[str, ...]
    """Steps that it replays from storage."""
    warnings: tuple[str, ...]
    equivalent: str
    """The command that does the same."""
    inverse: Action | None = None
    """The action that takes it back, where there is one."""
    inverse_options: PlanOptions = field(default_factory=PlanOptions)
    """What the inverse has to say again: the reason and the rest of a pause that is ended."""
    forecast: Forecast | None = None
    """Of a backfill that would be started: what a pass would touch, and what must hold for one."""
    ready: Count | None = None
    """Of a queue that would be paused or resumed: what is due in it."""

    @property
    def sampled(self) -> int | None:
        """How many of the matched rows `queues`, `tenants`, `refused` and the steps speak of, when not of all."""
        looked_at = sum(self.queues.values())
        return looked_at if self.matched.value > max(LOOKED_AT, looked_at) else None


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """What an act did, by the ids of the rows that it was for.

    `refused` are rows that it does not fit, `failed` those of the batch at which an error ended it. Batches that were
    applied stay applied when it is stopped or cut off; `activity_id` is its row in the activity table.
    """

    matched: int
    done: tuple[UUID, ...]
    refused: tuple[Refusal, ...]
    failed: tuple[Refusal, ...]
    activity_id: UUID
    finished_at: datetime
    """When the last of it was applied, by the queue's clock."""
    stopped: bool = False
    """True when the caller stopped it between two batches."""
