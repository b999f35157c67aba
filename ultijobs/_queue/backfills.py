"""The ledger of backfills: one row per pass, from which a pass that was cut off goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from ultijobs._queue.records import Enqueued
from ultijobs.errors import BackfillRunning

__all__ = ["BackfillStore", "PassMark", "PassRow", "PassStart", "PassStatus", "Surveyed", "running"]


class PassStatus(StrEnum):
    """What has become of a pass. `completed` is final."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PassStart:
    """A pass that begins, or goes on, under the claim `lease_no` of its job."""

    run_id: UUID
    job_id: UUID
    lease_no: int
    name: str
    checksum: str
    app_version: str | None = None
    environment: str | None = None
    forced: bool = False


@dataclass(frozen=True, slots=True)
class PassMark:
    """How far a pass is: everything before `cursor` is handled. Totals of the whole pass, so that a repeat is none."""

    run_id: UUID
    job_id: UUID
    lease_no: int
    cursor: str | None
    """JSON text; None is the beginning of the source."""
    rows: int
    batches: int
    sweep: int = 0
    """How often the source was begun anew, for rows that had come behind the cursor."""
    remaining: int | None = None
    """What `count()` has just answered; None leaves the last answer as it is."""
    in_hand: int = 0
    in_hand_to: str | None = None
    """Of a page that was cut off and is not finished yet; see `PassRow`."""


@dataclass(frozen=True, slots=True)
class PassRow:
    """A line of the ledger. `status` is read off the job too: one whose job has ended is not running."""

    run_id: UUID
    job_id: UUID
    name: str
    status: str
    checksum: str
    app_version: str | None
    environment: str | None
    forced: bool
    rows: int
    batches: int
    sweep: int
    remaining: int | None
    """The last answer of `count()`."""
    counted_at: datetime | None
    counted_rows: int
    """How many rows were handled when it was counted."""
    cursor: str | None
    in_hand: int
    """The rows behind the cursor that are being handled, or were when the pass was cut off; 0 between two pages."""
    in_hand_to: str | None
    """The key of the last of them, JSON text. A source without keys has neither."""
    started_at: datetime
    """Of the first attempt."""
    resumed_at: datetime
    """Of the last attempt, which began with `resumed_rows` rows handled."""
    resumed_rows: int
    updated_at: datetime
    completed_at: datetime | None
    job_state: str | None
    """None once the job is forgotten."""
    error_code: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Surveyed:
    """All there is to know of one name: its newest pass, its newest completed one, and the live job if there is one."""

    name: str
    newest: PassRow | None
    completed: PassRow | None
    live_job: UUID | None
    live_state: str | None


def running(name: str, job: UUID) -> BackfillRunning:
    """The refusal of a pass while that job has one."""
    return BackfillRunning(
        f"a pass of the backfill {name} is live already: job {job}",
        fix=f"ultijobs jobs show {job}",
        meta={"name": name, "job_id": str(job)},
    )


class BackfillStore(Protocol):
    """Writes are fenced by the claim of the pass's job; each answers whether that is held."""

    async def begin(self, start: PassStart) -> PassRow | None:
        """Opens the row of a run or takes it up again, with its cursor and its first start; None without the claim.

        One that is completed stays so, and is answered as it is. Raises `BackfillRunning`, and opens none, while
        another live job has begun a pass of this name that is not over, whatever tenant either belongs to.
        """
        ...

    async def live(self, name: str) -> Enqueued | None:
        """The live job of this backfill, of whatever tenant, as an enqueue that dedupes would answer it."""
        ...

    async def take(self, start: PassStart, rows: int, last: str) -> bool:
        """Notes the page that is about to be handled, and its last key, for who goes on should the pass be cut off."""
        ...

    async def mark(self, mark: PassMark) -> bool: ...
    async def end(self, start: PassStart, status: PassStatus, *, remaining: int | None = None) -> bool:
        """Completed or failed; a failed pass keeps its cursor. Changes nothing about one that is completed."""
        ...

    async def completed(self, name: str) -> PassRow | None:
        """The newest pass of this name that is completed."""
        ...

    async def passes(
        self,
        *,
        name: str | None = None,
        run_id: UUID | None = None,
        statuses: Sequence[PassStatus] = (),
        limit: int = 100,
    ) -> list[PassRow]:
        """The ledger, newest first."""
        ...

    async def survey(self, names: Sequence[str]) -> list[Surveyed]:
        """What there is of these names and of every other name in the ledger, sorted by name."""
        ...

    async def reconcile(self) -> int:
        """Writes down what became of passes whose jobs have ended without a word; how many."""
        ...
