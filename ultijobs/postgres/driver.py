"""`PostgresDriver`: the driver contract on PostgreSQL 15 and newer, composed of modules that hold the SQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.attention import Attention
from ultijobs._queue.claims import Allowance, ClaimAsk, ClaimedJob, CrashPolicy, HeldSlot, Reaped, Settlement, Verdict
from ultijobs._queue.records import ActResult, Enqueued, NewJob, RequeueAsk
from ultijobs._queue.steps import StepAnswer, StepRecord, StepWrite
from ultijobs._queue.telling import CatalogEntry, Signal, WorkerBeat, WorkerOrder
from ultijobs.postgres import activity, catalog, filing, history, queues, undoing, workers
from ultijobs.postgres.attention import attention
from ultijobs.postgres.backfills import PostgresBackfills
from ultijobs.postgres.cancel import cancel
from ultijobs.postgres.claims import Claimer
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.enqueue import Enqueuer
from ultijobs.postgres.events import PostgresEvents
from ultijobs.postgres.inspection import PostgresInspection
from ultijobs.postgres.leases import PostgresLeaseLink, reap
from ultijobs.postgres.links import Links
from ultijobs.postgres.listen import subscribed
from ultijobs.postgres.migrate import check
from ultijobs.postgres.moving import PostgresMoves
from ultijobs.postgres.outbox import PostgresOutbox
from ultijobs.postgres.place import SWEEPING, Place
from ultijobs.postgres.requeue import requeue
from ultijobs.postgres.retention import PostgresRetention
from ultijobs.postgres.schedule import PostgresSchedule
from ultijobs.postgres.settlements import settle
from ultijobs.postgres.slots import let_go
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.steps import load_steps, record_steps
from ultijobs.postgres.tables import Tables
from ultijobs.postgres.telemetry import PostgresTelemetry
from ultijobs.postgres.undoing import PostgresUndo

__all__ = ["PostgresDriver"]


class PostgresDriver:
    """A queue in one schema of a PostgreSQL database.

    Connections are opened as they are needed, one per kind of work (claims, settlements, steps, enqueues, control,
    inspection), and replaced when they are lost; while the database is away each call raises `DriverUnavailable` after
    a bounded time.
    A driver belongs to the loop that opened it; its lease link belongs to the loop that opens that.
    """

    def __init__(self, url: str, schema: str = "public") -> None:
        self._sql = Sql(schema)
        self._place = Place(Dsn.parse(url))
        self._make_links()

    def _make_links(self) -> None:
        self._claims = Links(self._place, hot=True)
        self._settlements = Links(self._place, hot=True)
        self._steps = Links(self._place, hot=True)
        self._looks = Links(self._place, hot=True)
        self._enqueues = Links(self._place, size=2, limit=30.0, hot=True)
        self._transactions = Links(self._place, size=8, limit=30.0)
        self._control = Links(self._place, size=2, limit=30.0)
        self._reads = Links(self._place, size=2, limit=2.0, read_only=True)
        self._upkeep = Links(self._place, limit=10.0, settings=SWEEPING)
        self._inspect = PostgresInspection(self._reads, self._control, self._sql)
        self._claimer = Claimer(self._claims, self._sql)
        self._outbox = PostgresOutbox(self._control, self._reads, self._sql)
        self._enqueuer = Enqueuer(self._enqueues, self._sql)
        self._schedule = PostgresSchedule(self._control, self._reads, self._transactions, self._sql, self._enqueuer)
        self._moves = PostgresMoves(self._control, self._reads, self._sql)
        self._events = PostgresEvents(self._enqueues, self._looks, self._reads, self._sql)
        self._backfills = PostgresBackfills(self._control, self._reads, self._sql)
        self._retention = PostgresRetention(self._upkeep, self._control, self._sql)
        self._telemetry = PostgresTelemetry(self._control, self._sql)
        self._undoing = PostgresUndo(self._control, self._reads, self._sql)
        self._tables = Tables(self._place)

    @property
    def url(self) -> str:
        return self._place.dsn.shown

    @property
    def schema(self) -> str:
        return self._sql.schema

    @property
    def keeps_slots(self) -> bool:
        return True

    @property
    def outbox(self) -> PostgresOutbox:
        return self._outbox

    @property
    def inspect(self) -> PostgresInspection:
        return self._inspect

    @property
    def schedule(self) -> PostgresSchedule:
        return self._schedule

    @property
    def events(self) -> PostgresEvents:
        return self._events

    @property
    def moves(self) -> PostgresMoves:
        return self._moves

    @property
    def backfills(self) -> PostgresBackfills:
        return self._backfills

    @property
    def retention(self) -> PostgresRetention:
        return self._retention

    @property
    def telemetry(self) -> PostgresTelemetry:
        return self._telemetry

    @property
    def undoing(self) -> PostgresUndo:
        return self._undoing

    @property
    def tables(self) -> Tables:
        """The application's own tables in this database."""
        return self._tables

    async def open(self, role: str = "app") -> None:
        """See `Driver.open`. It may be opened again after a close."""
        self._place.role = role
        self._make_links()
        try:
            async with self._control.hold() as connection:
                await check(connection, self._sql.schema)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self._enqueuer.close()
        await self._tables.close()
        for links in (
            self._claims,
            self._settlements,
            self._steps,
            self._looks,
            self._enqueues,
            self._transactions,
            self._control,
            self._reads,
            self._upkeep,
        ):
            await links.close()

    # -- jobs ------------------------------------------------------------------------------------------
    async def enqueue(self, jobs: Sequence[NewJob], *, tx: object | None = None, again: bool = False) -> list[Enqueued]:
        return await self._enqueuer.enqueue(jobs, tx, again=again)

    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        return await self._claimer.claim(ask)

    async def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        return await settle(self._settlements, self._sql, settlements)

    def lease_link(self) -> PostgresLeaseLink:
        return PostgresLeaseLink(self._place, self._sql)

    async def attention(self) -> Attention:
        return await attention(self._claims, self._sql)

    async def reap(self, policies: Sequence[CrashPolicy], *, limit: int = 100) -> list[Reaped]:
        return await reap(self._claims, self._sql, policies, limit)

    async def next_due(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        *,
        caps: Collection[str] = (),
        tenants: Allowance | None = None,
    ) -> timedelta | None:
        return await self._claimer.next_due(queues, names, caps, tenants)

    async def file(
        self, queues: Sequence[str], names: Sequence[str], caps: Collection[str], apart: Collection[str] = ()
    ) -> int:
        return await filing.file(self._control, self._sql, queues, names, caps, apart)

    # -- steps -----------------------------------------------------------------------------------------
    async def load_steps(self, run_ids: Sequence[UUID]) -> Mapping[UUID, list[StepRecord]]:
        return await load_steps(self._steps, self._sql, run_ids)

    async def record_steps(self, writes: Sequence[StepWrite]) -> list[StepAnswer]:
        return await record_steps(self._steps, self._sql, writes)

    # -- acts ------------------------------------------------------------------------------------------
    async def requeue(self, ask: RequeueAsk) -> list[ActResult]:
        return await requeue(self._control, self._sql, ask)

    async def cancel(
        self, ids: Sequence[UUID], *, reason: str | None = None, tenant: str | None = None, act: UUID | None = None
    ) -> list[ActResult]:
        return await cancel(self._control, self._sql, ids, reason, tenant, act)

    async def let_go(self, slots: Sequence[HeldSlot]) -> list[bool]:
        return await let_go(self._control, self._sql, slots)

    async def pause(self, queue: str, *, actor: str, reason: str | None, duration: timedelta | None) -> bool:
        return await queues.pause(self._control, self._sql, queue, actor, reason, duration)

    async def resume(self, queue: str) -> bool:
        return await queues.resume(self._control, self._sql, queue)

    async def order_worker(self, worker_id: str, order: WorkerOrder) -> int:
        return await workers.order_worker(self._control, self._sql, worker_id, order)

    async def open_activity(self, entry: ActivityEntry) -> UUID:
        return await activity.open_activity(self._control, self._sql, entry)

    async def close_activity(self, id: UUID, *, matched: int, done: int, refused: int, failed: int) -> datetime:
        return await activity.close_activity(self._control, self._sql, id, matched, done, refused, failed)

    # -- what workers tell -----------------------------------------------------------------------------
    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        return await workers.beat(self._control, self._sql, beat)

    async def publish_catalog(self, entries: Sequence[CatalogEntry]) -> None:
        await catalog.publish(self._control, self._sql, entries)

    async def confirm_catalog(self, entries: Sequence[CatalogEntry]) -> None:
        await catalog.confirm(self._control, self._sql, entries)

    async def housekeep(self) -> None:
        await history.make_days_ahead(self._control, self._sql)
        await workers.forget(self._control, self._sql)
        await self._schedule.forget_leaders()
        await undoing.forget(self._control, self._sql)

    # -- hints and transactions ------------------------------------------------------------------------
    def subscribe(self, on_signal: Callable[[Signal], None]) -> AbstractAsyncContextManager[None]:
        return subscribed(self._place, self._sql, on_signal)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[object]:
        async with self._transactions.transaction() as connection:
            yield connection
