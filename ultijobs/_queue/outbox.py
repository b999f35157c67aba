"""The staged outbox: rows that wait in an application's database until a relay has published them into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from ultijobs._queue.events import NewEvent
from ultijobs._queue.records import ActResult, Enqueued, NewJob
from ultijobs._queue.views import OutboxDepth

__all__ = [
    "OutboxDepth",
    "OutboxKind",
    "OutboxPage",
    "OutboxRow",
    "OutboxState",
    "OutboxStore",
    "Published",
    "Staged",
    "StagedEvent",
    "StagedJob",
    "Unsent",
]


class OutboxState(StrEnum):
    """Where a row stands: waiting for a relay, in the queue, or left alone after too many failures."""

    STAGED = "staged"
    PUBLISHED = "published"
    SET_ASIDE = "set-aside"


class OutboxKind(StrEnum):
    """What a row becomes in the queue."""

    JOB = "job"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A claimed job, fenced by `claim_no`. `job.delay` is what is left of the delay at the claim."""

    job: NewJob
    claim_no: int
    attempts: int
    """Failures so far."""
    tx: str
    """Rows of one transaction share it; they are claimed together and in order."""

    @property
    def id(self) -> UUID:
        return self.job.id

    @property
    def name(self) -> str:
        return self.job.name


@dataclass(frozen=True, slots=True)
class StagedEvent:
    """A claimed event, fenced by `claim_no`; see `StagedJob`. Its time to live begins when it is published."""

    event: NewEvent
    claim_no: int
    attempts: int
    tx: str

    @property
    def id(self) -> UUID:
        return self.event.id

    @property
    def name(self) -> str:
        return self.event.name


Staged = StagedJob | StagedEvent


@dataclass(frozen=True, slots=True)
class Published:
    """A row that is in the queue: `job_id` is a job's own id or that of the live job which holds its key.

    An event has none.
    """

    id: UUID
    claim_no: int
    job_id: UUID | None


@dataclass(frozen=True, slots=True)
class Unsent:
    """A row that the queue refused. `retry_in` None sets it aside, and the later rows of its transaction with it."""

    id: UUID
    claim_no: int
    error: str
    retry_in: timedelta | None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A staged row, without its payload. `claimed_by` is the relay that has it now, or had it last."""

    id: UUID
    kind: OutboxKind
    name: str
    queue: str | None
    """None of an event."""
    tenant_id: str | None
    state: OutboxState
    attempts: int
    last_error: str | None
    staged_at: datetime
    published_at: datetime | None
    set_aside_at: datetime | None
    next_at: datetime | None
    claimed_at: datetime | None
    claimed_by: str | None
    held_by: UUID | None
    """The row of the same transaction that this one was set aside with."""
    job_id: UUID | None


@dataclass(frozen=True, slots=True)
class OutboxPage:
    """Rows newest first; `next` continues behind the last of them, None at the end."""

    rows: list[OutboxRow]
    next: str | None


class OutboxStore(Protocol):
    """Rows are published in the order of their transactions, and within one in the order of staging.

    A transaction that commits late is not skipped. Of one transaction's rows only one claimant holds any at a time, so
    that two of them are never swapped; between transactions no order is promised.
    """

    async def identity(self) -> str:
        """What tells this outbox from others of its kind, and is the same from wherever it is read."""
        ...

    async def stage(self, jobs: Sequence[NewJob], *, tx: object, expected: str | None = None) -> list[Enqueued]:
        """Stores them in the caller's transaction; each answer's id is the one that its job will have.

        With `expected`, the identity of the outbox that is meant, a transaction on another's database is refused as
        `OutboxMisplaced`: nothing is stored, and the transaction stays usable.
        """
        ...

    async def stage_events(self, events: Sequence[NewEvent], *, tx: object, expected: str | None = None) -> None:
        """As `stage`, in one order with the jobs of the transaction; the id of each stays the event's."""
        ...

    async def claim(self, claimant: str, *, limit: int, lease: timedelta) -> list[Staged]:
        """Up to `limit` rows in order, also those whose claim is older than `lease`; each gets a new claim number."""
        ...

    async def mark(self, rows: Sequence[Published]) -> list[UUID]:
        """The ids that were still claimed under their number and are published now."""
        ...

    async def fail(self, rows: Sequence[Unsent]) -> list[UUID]:
        """Counts the failure of what is still claimed, and gives it back for later; answers all that was set aside."""
        ...

    async def release(self, rows: Sequence[Staged]) -> None:
        """Gives claims back at no cost; what is claimed by another meanwhile stays."""
        ...

    async def rows(
        self,
        states: Sequence[OutboxState] = (),
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> OutboxPage: ...
    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        """Ids that end with these hex digits, `limit` at the most, looked for among the newest rows."""
        ...

    async def depth(self, *, cap: int = 10_000) -> OutboxDepth: ...
    async def retry(self, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        """Stages again what was set aside, with all that was set aside with it; answers for `ids` and for those.

        With `tenant` an id of another tenant's row is unknown; what goes with a row may be anybody's.
        """
        ...

    async def forget(self, older_than: timedelta, *, limit: int = 1_000) -> int:
        """Deletes published rows; how many."""
        ...
