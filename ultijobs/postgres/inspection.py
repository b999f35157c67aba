"""All reads of inspection on Postgres, each bounded, on a link that can only read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
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
from ultijobs.postgres import (
    activity,
    catalog,
    causes,
    due,
    health,
    matching,
    pages,
    probes,
    reads,
    slots,
    stats,
    tallies,
    workers,
)
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["PostgresInspection"]


class PostgresInspection:
    """`InspectionStore` on one kind of connection. Nothing here writes or waits for a row lock."""

    __slots__ = ("_acting", "_links", "_sql")

    def __init__(self, links: Links, acting: Links, sql: Sql) -> None:
        """`acting` has the longer time limit that collecting the targets of an act needs."""
        self._links = links
        self._acting = acting
        self._sql = sql

    async def now(self) -> datetime:
        now: datetime = await self._links.fetchval("select now()")
        return now

    async def stats(self, queue: str | None = None, tenant: str | None = None) -> Stats:
        return await stats.stats(self._links, self._sql, queue, tenant)

    async def queues(self) -> list[QueueRow]:
        return (await stats.stats(self._links, self._sql, None, None)).queues

    async def jobs(
        self, where: Where, *, sort: Sort = Sort.NEWEST, after: str | None = None, limit: int = 100
    ) -> JobPage:
        return await pages.page(self._links, self._sql, where, sort, after, limit)

    async def job(self, id: UUID, *, tenant: str | None = None) -> JobRow | None:
        return await reads.job(self._links, self._sql, id, tenant)

    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        return await reads.resolve(self._links, self._sql, tail, tenant, limit)

    async def input(self, id: UUID) -> str | None:
        return await reads.input_of(self._links, self._sql, id)

    async def steps(self, run_id: UUID) -> list[StepRecord]:
        return await reads.steps(self._links, self._sql, run_id)

    async def attempts(self, run_id: UUID) -> list[AttemptRecord]:
        return await reads.attempts(self._links, self._sql, run_id)

    async def count(self, where: Where, *, cap: int = 10_000) -> Count:
        return await matching.count(self._links, self._sql, where, cap)

    async def targets(
        self, where: Where, *, as_of: datetime, after: UUID | None = None, limit: int = 500
    ) -> list[UUID]:
        return await matching.targets(self._acting, self._sql, where, as_of, after, limit)

    async def causes(self, where: Where, *, limit: int = 50) -> list[Cause]:
        return await causes.causes(self._links, self._sql, where, limit)

    async def tally(self, where: Where, by: Field, *, limit: int = 50) -> list[Tally]:
        return await tallies.tally(self._links, self._sql, where, by, limit)

    async def due(
        self, *, queues: Sequence[str], without: Sequence[str] = (), tenants: Sequence[str] = (), limit: int = 50
    ) -> list[DueGroup]:
        return await due.due(self._links, self._sql, queues, without, tenants, limit)

    async def leases(self, *, limit: int = 200) -> list[LeaseRow]:
        return await reads.leases(self._links, self._sql, limit)

    async def slots(self, name: str, *, limit: int = 200) -> list[SlotRow]:
        return await slots.holders(self._links, self._sql, name, limit)

    async def workers(self) -> list[WorkerRow]:
        return await workers.workers(self._links, self._sql)

    async def catalog(self, kind: str | None = None) -> list[CatalogEntry]:
        return await catalog.catalog(self._links, self._sql, kind)

    async def activity(self, *, after: UUID | None = None, limit: int = 100) -> list[ActivityRow]:
        return await activity.activity(self._links, self._sql, after, limit)

    async def health(self) -> Health:
        return await health.health(self._links, self._sql)

    async def detours(self) -> list[str]:
        return await probes.detours(self._links, self._sql)
