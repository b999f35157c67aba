"""`MemoryDriver`: the whole driver contract in one process, for applications' tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from uuid import UUID

from ultijobs._clock import SYSTEM_CLOCK, Clock
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.attention import Attention
from ultijobs._queue.claims import Allowance, ClaimAsk, ClaimedJob, CrashPolicy, HeldSlot, Reaped, Settlement, Verdict
from ultijobs._queue.records import ActResult, Enqueued, NewJob, RequeueAsk
from ultijobs._queue.steps import StepAnswer, StepRecord, StepWrite
from ultijobs._queue.telling import CatalogEntry, Signal, WorkerBeat, WorkerOrder
from ultijobs.memory import _acts, _claims, _operations, _settle, _steps
from ultijobs.memory._backfills import MemoryBackfills
from ultijobs.memory._enqueue import Transactions
from ultijobs.memory._events import MemoryEvents
from ultijobs.memory._inspect import MemoryInspection
from ultijobs.memory._leases import MemoryLeaseLink
from ultijobs.memory._moving import MemoryMoves
from ultijobs.memory._outbox import MemoryOutbox
from ultijobs.memory._retention import MemoryRetention
from ultijobs.memory._schedule import MemorySchedule
from ultijobs.memory._store import Store
from ultijobs.memory._telemetry import MemoryTelemetry
from ultijobs.memory._undoing import MemoryUndo

__all__ = ["MemoryDriver"]


class MemoryDriver:
    """A queue that lives as long as this object: nothing is durable, everything else is as on Postgres.

    Any thread and any loop may call it. `clock` decides what "now" is: leases lapse, delays end and pauses expire by it
    alone, so that a test moves time instead of waiting.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._store = Store(SYSTEM_CLOCK if clock is None else clock)
        self._transactions = Transactions(self._store)
        self._outbox = MemoryOutbox(self._store)
        self._inspect = MemoryInspection(self._store, self._outbox)
        self._schedule = MemorySchedule(self._store, self._transactions)
        self._moves = MemoryMoves(self._store)
        self._events = MemoryEvents(self._store, self._transactions)
        self._backfills = MemoryBackfills(self._store)
        self._retention = MemoryRetention(self._store, self._outbox, self._schedule)
        self._telemetry = MemoryTelemetry(self._store)
        self._undoing = MemoryUndo(self._store)

    @property
    def url(self) -> str:
        return "memory:"

    @property
    def keeps_slots(self) -> bool:
        return True

    @property
    def outbox(self) -> MemoryOutbox:
        return self._outbox

    @property
    def inspect(self) -> MemoryInspection:
        return self._inspect

    @property
    def schedule(self) -> MemorySchedule:
        return self._schedule

    @property
    def events(self) -> MemoryEvents:
        return self._events

    @property
    def moves(self) -> MemoryMoves:
        return self._moves

    @property
    def backfills(self) -> MemoryBackfills:
        return self._backfills

    @property
    def retention(self) -> MemoryRetention:
        return self._retention

    @property
    def telemetry(self) -> MemoryTelemetry:
        return self._telemetry

    @property
    def undoing(self) -> MemoryUndo:
        return self._undoing

    async def open(self, role: str = "app") -> None:
        """Nothing to connect to; any number of times, for any role."""

    async def close(self) -> None:
        """Keeps the rows, so that a test can look at them afterwards."""

    # -- jobs ------------------------------------------------------------------------------------------
    async def enqueue(
        self,
        jobs: Sequence[NewJob],
        *,
        tx: object | None = None,
        again: bool = False,  # noqa: ARG002 - a known id is answered in any case
    ) -> list[Enqueued]:
        return await self._transactions.enqueue(jobs, tx)

    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        with self._store.lock:
            return _claims.claim(self._store, ask)

    async def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        with self._store.lock:
            return _settle.settle(self._store, settlements)

    def lease_link(self) -> MemoryLeaseLink:
        return MemoryLeaseLink(self._store)

    async def attention(self) -> Attention:
        with self._store.lock:
            return Attention(lapsed=_claims.any_lapsed(self._store), events=False)

    async def reap(self, policies: Sequence[CrashPolicy], *, limit: int = 100) -> list[Reaped]:
        with self._store.lock:
            return _claims.reap(self._store, {policy.name: policy for policy in policies}, limit)

    async def next_due(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        *,
        caps: Collection[str] = (),
        tenants: Allowance | None = None,
    ) -> timedelta | None:
        with self._store.lock:
            return _claims.next_due(self._store, queues, names, caps, tenants)

    async def file(
        self, queues: Sequence[str], names: Sequence[str], caps: Collection[str], apart: Collection[str] = ()
    ) -> int:
        with self._store.lock:
            return _claims.file(self._store, queues, names, caps, apart)

    # -- steps -----------------------------------------------------------------------------------------
    async def load_steps(self, run_ids: Sequence[UUID]) -> Mapping[UUID, list[StepRecord]]:
        with self._store.lock:
            return _steps.load_steps(self._store, run_ids)

    async def record_steps(self, writes: Sequence[StepWrite]) -> list[StepAnswer]:
        with self._store.lock:
            return _steps.record_steps(self._store, writes)

    # -- acts ------------------------------------------------------------------------------------------
    async def requeue(self, ask: RequeueAsk) -> list[ActResult]:
        with self._store.lock:
            return _acts.requeue(self._store, ask)

    async def cancel(
        self, ids: Sequence[UUID], *, reason: str | None = None, tenant: str | None = None, act: UUID | None = None
    ) -> list[ActResult]:
        with self._store.lock:
            return _acts.cancel(self._store, ids, reason, tenant, act)

    async def let_go(self, slots: Sequence[HeldSlot]) -> list[bool]:
        with self._store.lock:
            return [_acts.let_go(self._store, slot) for slot in slots]

    async def pause(self, queue: str, *, actor: str, reason: str | None, duration: timedelta | None) -> bool:
        with self._store.lock:
            return _operations.pause(self._store, queue, actor, reason, duration)

    async def resume(self, queue: str) -> bool:
        with self._store.lock:
            return _operations.resume(self._store, queue)

    async def order_worker(self, worker_id: str, order: WorkerOrder) -> int:
        with self._store.lock:
            return _operations.order_worker(self._store, worker_id, order)

    async def open_activity(self, entry: ActivityEntry) -> UUID:
        with self._store.lock:
            return _operations.open_activity(self._store, entry)

    async def close_activity(self, id: UUID, *, matched: int, done: int, refused: int, failed: int) -> datetime:
        with self._store.lock:
            return _operations.close_activity(self._store, id, matched, done, refused, failed)

    # -- what workers tell -----------------------------------------------------------------------------
    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        with self._store.lock:
            return _operations.beat(self._store, beat)

    async def publish_catalog(self, entries: Sequence[CatalogEntry]) -> None:
        with self._store.lock:
            _operations.publish_catalog(self._store, entries)

    async def confirm_catalog(self, entries: Sequence[CatalogEntry]) -> None:
        with self._store.lock:
            _operations.confirm_catalog(self._store, entries)

    async def housekeep(self) -> None:
        with self._store.lock:
            _operations.forget_workers(self._store)
            self._undoing.forget()

    def subscribe(self, on_signal: Callable[[Signal], None]) -> AbstractAsyncContextManager[None]:
        return self._store.signals.subscribed(on_signal)

    def transaction(self) -> AbstractAsyncContextManager[object]:
        return self._transactions.begin()
