"""The driver contract: what every backing store promises. One suite in `tests/contract` holds all of them to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from ultijobs._queue.activity import ActivityEntry, ActivityRow
from ultijobs._queue.attention import Attention
from ultijobs._queue.backfills import BackfillStore
from ultijobs._queue.claims import (
    Allowance,
    Beat,
    BeatAnswer,
    ClaimAsk,
    ClaimedJob,
    CrashPolicy,
    HeldSlot,
    Reaped,
    Settlement,
    Verdict,
)
from ultijobs._queue.events import EventStore
from ultijobs._queue.health import Health
from ultijobs._queue.moving import MoveStore
from ultijobs._queue.outbox import OutboxStore
from ultijobs._queue.records import ActResult, Enqueued, NewJob, RequeueAsk
from ultijobs._queue.retention import RetentionStore
from ultijobs._queue.schedule import ScheduleStore
from ultijobs._queue.steps import AttemptRecord, StepAnswer, StepRecord, StepWrite
from ultijobs._queue.telemetry import TelemetryStore
from ultijobs._queue.telling import CatalogEntry, Signal, WorkerBeat, WorkerOrder
from ultijobs._queue.undoing import UndoStore
from ultijobs._queue.views import (
    Cause,
    Count,
    DueGroup,
    JobPage,
    JobRow,
    LeaseRow,
    QueueRow,
    SlotRow,
    Sort,
    Stats,
    Tally,
    WorkerRow,
)
from ultijobs._queue.where import Field, Where

__all__ = ["Driver", "InspectionStore", "LeaseLink"]


class LeaseLink(Protocol):
    """A connection of its own for the lease keeper, opened, used and closed on the keeper's loop."""

    async def open(self) -> None: ...
    async def renew(self, beats: Sequence[Beat], lease: timedelta) -> list[BeatAnswer]:
        """Extends each lease to the database's now plus `lease`, one statement for all; answers in the order given."""
        ...

    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        """`Driver.beat`, for while the worker's own loop is blocked."""
        ...

    async def close(self) -> None: ...


class InspectionStore(Protocol):
    """Bounded reads. None locks, none writes, none costs what history costs."""

    async def now(self) -> datetime:
        """The clock that all stored times are in."""
        ...

    async def stats(self, queue: str | None = None, tenant: str | None = None) -> Stats: ...
    async def queues(self) -> list[QueueRow]: ...
    async def jobs(
        self, where: Where, *, sort: Sort = Sort.NEWEST, after: str | None = None, limit: int = 100
    ) -> JobPage:
        """One keyset page; `after` is the `next` of the page before."""
        ...

    async def job(self, id: UUID, *, tenant: str | None = None) -> JobRow | None: ...
    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        """Ids that end with these hex digits (at least 6), `limit` at the most."""
        ...

    async def input(self, id: UUID) -> str | None:
        """The stored JSON text of the input; lists never carry it."""
        ...

    async def steps(self, run_id: UUID) -> list[StepRecord]: ...
    async def attempts(self, run_id: UUID) -> list[AttemptRecord]: ...
    async def count(self, where: Where, *, cap: int = 10_000) -> Count: ...
    async def targets(
        self, where: Where, *, as_of: datetime, after: UUID | None = None, limit: int = 500
    ) -> list[UUID]:
        """Ids by id, not touched later than `as_of` (`updated_at`); what an act is applied to, page by page."""
        ...

    async def causes(self, where: Where, *, limit: int = 50) -> list[Cause]: ...
    async def tally(self, where: Where, by: Field, *, limit: int = 50) -> list[Tally]:
        """Jobs outside of history by tenant, queue or job, the most first; of at most 10,000 rows that match."""
        ...

    async def due(
        self,
        *,
        queues: Sequence[str],
        without: Sequence[str] = (),
        tenants: Sequence[str] = (),
        limit: int = 50,
    ) -> list[DueGroup]:
        """Due jobs in these queues whose name is not in `without`, by name and queue in byte order; counts are capped.

        Behind them those of `tenants` whose name is, by tenant too and the most first. At most `limit` of either kind.
        """
        ...

    async def leases(self, *, limit: int = 200) -> list[LeaseRow]: ...
    async def slots(self, name: str, *, limit: int = 200) -> list[SlotRow]:
        """The slots of a capped name that claims hold, in their order."""
        ...

    async def workers(self) -> list[WorkerRow]: ...
    async def catalog(self, kind: str | None = None) -> list[CatalogEntry]: ...
    async def activity(self, *, after: UUID | None = None, limit: int = 100) -> list[ActivityRow]: ...
    async def health(self) -> Health: ...
    async def detours(self) -> list[str]:
        """Which statements that workers send all day would not go by their index, in words; empty when all do."""
        ...


class Driver(Protocol):
    """A queue's store. Verbs take many and answer in the order given; all times are the store's own clock."""

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        ...

    @property
    def keeps_slots(self) -> bool:
        """True when claims keep to the caps of the fleet; else a worker refuses jobs that declare one."""
        ...

    @property
    def inspect(self) -> InspectionStore: ...
    @property
    def schedule(self) -> ScheduleStore: ...

    @property
    def outbox(self) -> OutboxStore:
        """The staged outbox of this database; it may be another database's queue that its relay publishes into."""
        ...

    @property
    def events(self) -> EventStore: ...

    @property
    def moves(self) -> MoveStore: ...
    @property
    def backfills(self) -> BackfillStore: ...
    @property
    def retention(self) -> RetentionStore: ...
    @property
    def telemetry(self) -> TelemetryStore: ...
    @property
    def undoing(self) -> UndoStore: ...

    async def open(self, role: str = "app") -> None:
        """Connects and checks the schema; `role` is told to the server (`ultijobs-<role>`).

        Raises `SchemaOutdated` for a missing, older or incompatible schema, `DriverUnavailable` when away; then it
        has left no connection open.
        """
        ...

    async def close(self) -> None: ...

    # -- jobs ------------------------------------------------------------------------------------------
    async def enqueue(self, jobs: Sequence[NewJob], *, tx: object | None = None, again: bool = False) -> list[Enqueued]:
        """Inserts or dedupes all of them in one transaction: the caller's `tx`, else its own.

        `again`, without a `tx`, says that they may have been stored before: a job whose id is known is answered,
        whatever has become of it, and not stored a second time.
        """
        ...

    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        """Claims due rows in claim order (priority, run_at, id); each gets a new, never reused lease number.

        Of several lanes the one with the oldest row comes first; in a fair queue they take turns. What a cap or an
        allowance holds back is not touched. A slot that is taken is held until the claim ends, however it does.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """Applies what still holds its lease number, with attempt rows for all outcomes but ok and suspended."""
        ...

    def lease_link(self) -> LeaseLink: ...

    async def attention(self) -> Attention:
        """Whether claims have lapsed, and whether events are undelivered: one look, cheaper than either in vain."""
        ...

    async def reap(self, policies: Sequence[CrashPolicy], *, limit: int = 100) -> list[Reaped]:
        """Ends claims whose lease lapsed: due again after their backoff, or stopped when attempts are used up.

        Also frees twins whose predecessor is gone, and sets right what SQL wrote: a row that runs without a lease is
        nobody's, one in the state `delayed` is ready. Safe to call from every worker at once.
        """
        ...

    async def next_due(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        *,
        caps: Collection[str] = (),
        tenants: Allowance | None = None,
    ) -> timedelta | None:
        """How long until the next row of these becomes due; None when there is none. Bounded, may be early.

        What is due already and held back by a cap or by its tenant's allowance does not count.
        """
        ...

    async def file(
        self, queues: Sequence[str], names: Sequence[str], caps: Collection[str], apart: Collection[str] = ()
    ) -> int:
        """Moves waiting rows of `names` into the lanes of those in `caps`, or out of the lane of one that is not.

        In the queues `apart` rows of a tenant, whatever their name, are moved into its lane. They were enqueued under
        another declaration. Answers how many were moved, a bounded number at a time.
        """
        ...

    # -- steps -----------------------------------------------------------------------------------------
    async def load_steps(self, run_ids: Sequence[UUID]) -> Mapping[UUID, list[StepRecord]]: ...
    async def record_steps(self, writes: Sequence[StepWrite]) -> list[StepAnswer]: ...

    # -- acts ------------------------------------------------------------------------------------------
    async def requeue(self, ask: RequeueAsk) -> list[ActResult]:
        """All rows of one call in one transaction per row's own success or refusal; step records go with it."""
        ...

    async def cancel(
        self, ids: Sequence[UUID], *, reason: str | None = None, tenant: str | None = None, act: UUID | None = None
    ) -> list[ActResult]:
        """Live rows become `cancelled` at once; a running one is fenced and its worker told.

        A slot of the fleet that it held is kept for its body until `let_go`. `act` as in `RequeueAsk`.
        """
        ...

    async def let_go(self, slots: Sequence[HeldSlot]) -> list[bool]:
        """Frees slots that jobs which were cancelled still hold, as their bodies have ended; True for each it freed.

        A slot that nobody lets go is free once the lease of its claim has ended and `reap` has been called.
        """
        ...

    async def pause(self, queue: str, *, actor: str, reason: str | None, duration: timedelta | None) -> bool:
        """True when this call paused it. A paused queue is not claimed; `duration` resumes it by itself."""
        ...

    async def resume(self, queue: str) -> bool: ...
    async def order_worker(self, worker_id: str, order: WorkerOrder) -> int:
        """How many live workers of that name were told."""
        ...

    async def open_activity(self, entry: ActivityEntry) -> UUID: ...
    async def close_activity(self, id: UUID, *, matched: int, done: int, refused: int, failed: int) -> datetime:
        """Its `finished_at`."""
        ...

    # -- what workers tell -----------------------------------------------------------------------------
    async def beat(self, beat: WorkerBeat) -> WorkerOrder: ...
    async def publish_catalog(self, entries: Sequence[CatalogEntry]) -> None: ...
    async def confirm_catalog(self, entries: Sequence[CatalogEntry]) -> None:
        """Says that these are still declared; how they are declared stays as it was published last."""
        ...

    async def housekeep(self) -> None:
        """Makes history's days ahead, and forgets workers long gone and acts of more than a day ago; cheap, safe."""
        ...

    def subscribe(self, on_signal: Callable[[Signal], None]) -> AbstractAsyncContextManager[None]:
        """Calls back for each hint, on the running loop. A hint may be lost: polling stays the truth."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """A transaction of the driver's own, to pass as `tx`: commits at the end, rolls back on an exception."""
        ...
