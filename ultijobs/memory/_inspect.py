"""The reads of a store in memory: pages, single rows, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._queue.activity import ActivityRow
from ultijobs._queue.health import Health
from ultijobs._queue.steps import AttemptRecord, StepRecord
from ultijobs._queue.telling import CatalogEntry
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
from ultijobs.errors import Invariant
from ultijobs.memory import _counts
from ultijobs.memory._filters import matches
from ultijobs.memory._outbox import MemoryOutbox
from ultijobs.memory._rows import Row
from ultijobs.memory._steps import steps_of
from ultijobs.memory._store import Store
from ultijobs.memory._views import job_row, lease_row, worker_row

__all__ = ["MemoryInspection"]

_CAP: Final = 10_000


class MemoryInspection:
    """Answers with values of its own: nothing that is returned changes when the store does."""

    __slots__ = ("_outbox", "_store")

    def __init__(self, store: Store, outbox: MemoryOutbox) -> None:
        self._store = store
        self._outbox = outbox

    async def now(self) -> datetime:
        return self._store.now()

    async def stats(self, queue: str | None = None, tenant: str | None = None) -> Stats:
        with self._store.lock:
            counted = _counts.stats(self._store, queue, tenant)
            whole = queue is None and tenant is None
            return replace(counted, outbox=self._outbox.counted(_CAP)) if whole else counted

    async def queues(self) -> list[QueueRow]:
        with self._store.lock:
            return _counts.queues(self._store)

    async def jobs(
        self, where: Where, *, sort: Sort = Sort.NEWEST, after: str | None = None, limit: int = 100
    ) -> JobPage:
        with self._store.lock:
            now = self._store.now()
            order = _ORDERS[sort]
            listed = _LISTED.get(sort)
            rows = (row for row in self._store.rows() if listed is None or row.state in listed)
            found = sorted((row for row in rows if matches(self._store, row, where, now)), key=order)
            if after is not None:
                last = _read_token(after)
                found = [row for row in found if order(row) > last]
            page = found[:limit]
            more = len(found) > limit
            return JobPage(
                rows=[job_row(self._store, row, now) for row in page],
                next=_token(order(page[-1])) if more and page else None,
                as_of=now,
            )

    async def job(self, id: UUID, *, tenant: str | None = None) -> JobRow | None:
        with self._store.lock:
            row = self._store.find(id)
            if row is None or (tenant is not None and row.tenant_id != tenant):
                return None
            return job_row(self._store, row, self._store.now())

    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        digits = tail.replace("-", "").lower()
        with self._store.lock:
            found = (
                row.id
                for row in self._store.rows()
                if row.id.hex.endswith(digits) and (tenant is None or row.tenant_id == tenant)
            )
            return sorted(found)[:limit]

    async def input(self, id: UUID) -> str | None:
        with self._store.lock:
            row = self._store.find(id)
            return None if row is None else row.input

    async def steps(self, run_id: UUID) -> list[StepRecord]:
        with self._store.lock:
            return steps_of(self._store, run_id)

    async def attempts(self, run_id: UUID) -> list[AttemptRecord]:
        with self._store.lock:
            return sorted(self._store.attempts.get(run_id, {}).values(), key=lambda attempt: attempt.lease_no)

    async def count(self, where: Where, *, cap: int = 10_000) -> Count:
        with self._store.lock:
            return _counts.count(self._store, where, cap)

    async def targets(
        self, where: Where, *, as_of: datetime, after: UUID | None = None, limit: int = 500
    ) -> list[UUID]:
        with self._store.lock:
            now = self._store.now()
            found = (
                row.id
                for row in self._store.rows()
                if row.updated_at <= as_of
                and (after is None or row.id > after)
                and matches(self._store, row, where, now)
            )
            return sorted(found)[:limit]

    async def causes(self, where: Where, *, limit: int = 50) -> list[Cause]:
        with self._store.lock:
            return _counts.causes(self._store, where, limit)

    async def tally(self, where: Where, by: Field, *, limit: int = 50) -> list[Tally]:
        with self._store.lock:
            return _counts.tally(self._store, where, by, limit)

    async def due(
        self, *, queues: Sequence[str], without: Sequence[str] = (), tenants: Sequence[str] = (), limit: int = 50
    ) -> list[DueGroup]:
        with self._store.lock:
            return _counts.due(self._store, queues, without, tenants, limit)

    async def leases(self, *, limit: int = 200) -> list[LeaseRow]:
        with self._store.lock:
            now = self._store.now()
            held = [lease_row(row, now) for row in self._store.jobs.values() if row.lease_until is not None]
            return sorted(held, key=lambda lease: (lease.lease_until, lease.id))[:limit]

    async def slots(self, name: str, *, limit: int = 200) -> list[SlotRow]:
        with self._store.lock:
            return self._store.slots.holders(name)[:limit]

    async def workers(self) -> list[WorkerRow]:
        with self._store.lock:
            now = self._store.now()
            rows = [worker_row(worker, now) for worker in self._store.workers.values()]
            return sorted(rows, key=lambda worker: (worker.worker_id, worker.instance))

    async def catalog(self, kind: str | None = None) -> list[CatalogEntry]:
        with self._store.lock:
            return [entry for key, entry in sorted(self._store.catalog.items()) if kind in {None, key[0]}]

    async def activity(self, *, after: UUID | None = None, limit: int = 100) -> list[ActivityRow]:
        with self._store.lock:
            rows = sorted(self._store.activity.values(), key=lambda row: row.id, reverse=True)
            return [row for row in rows if after is None or row.id < after][:limit]

    async def health(self) -> Health:
        with self._store.lock:
            return Health(
                kind="memory",
                version="",
                schema_version=0,
                connections=0,
                connection_limit=0,
                snapshots=[],
                tables=[],
                blocked=0,
                listeners=self._store.signals.count(),
                notify_queue=0.0,
                as_of=self._store.now(),
                lacks=("a queue in memory has no server: no sessions, locks, tables or indexes to look at",),
            )

    async def detours(self) -> list[str]:
        """Nothing is planned here."""
        return []


def _micros(time: datetime | None) -> int:
    """Whole microseconds, so that a key survives its way through a token."""
    return 0 if time is None else round(time.timestamp() * 1_000_000)


_ORDERS: dict[Sort, Callable[[Row], tuple[int, int]]] = {
    Sort.NEWEST: lambda row: (0, -row.id.int),
    Sort.OLDEST: lambda row: (0, row.id.int),
    Sort.DUE: lambda row: (_micros(row.run_at), row.id.int),
    Sort.STOPPED: lambda row: (-_micros(row.finished_at), -row.id.int),
}


_LISTED = {Sort.DUE: {"ready", "suspended"}, Sort.STOPPED: {"dead", "failed"}}
"""Sorts that speak of some rows alone: those that wait, those that have stopped."""


def _token(key: tuple[int, int]) -> str:
    return f"{key[0]}.{key[1]}"


def _read_token(token: str) -> tuple[int, int]:
    try:
        first, second = token.split(".")
        return int(first), int(second)
    except ValueError:
        raise Invariant(f"{token[:80]!r} is no page's next", fix="give --after what the page before answered") from None
