"""What a filter matches beyond a page: how many rows up to a cap, and the ids that an act is applied to."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._queue.views import Count
from ultijobs._queue.where import Where
from ultijobs.postgres.filters import Arguments, conditions, touches
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["count", "targets"]

_SCANNED: Final = 10_000


async def count(links: Links, sql: Sql, where: Where, cap: int) -> Count:
    """See `InspectionStore.count`."""
    total, cut = 0, False
    for history in (False, True):
        if not touches(where, history=history):
            continue
        arguments = Arguments()
        parts = conditions(where, arguments, history=history)
        table = _table(history=history)
        if parts.looked:
            newest = f"order by j.id desc limit {_SCANNED}"
            seen = f"select ({parts.hit()}) as hit from {table} j where {parts.where()} {newest}"
            row = await links.fetchrow(
                sql(f"select count(*) filter (where hit) as hits, count(*) as seen from ({seen}) x"), *arguments.values
            )
            assert row is not None
            total += row["hits"]
            cut = cut or row["seen"] == _SCANNED
        else:
            rows = f"select from {table} j where {parts.where()} limit {arguments.add(cap + 1)}"
            total += await links.fetchval(sql(f"select count(*) from ({rows}) x"), *arguments.values)
    return Count(min(total, cap), "capped" if cut or total > cap else "exact")


async def targets(links: Links, sql: Sql, where: Where, as_of: datetime, after: UUID | None, limit: int) -> list[UUID]:
    """See `InspectionStore.targets`. Words that scan reach the newest rows alone, as they do in a list."""
    arguments = Arguments()
    untouched = f"j.updated_at <= {arguments.add(as_of)}"
    beyond = f"j.id > {arguments.add(after)}" if after is not None else "true"
    branches: list[str] = []
    for history in (False, True):
        if not touches(where, history=history):
            continue
        parts = conditions(where, arguments, history=history)
        table = _table(history=history)
        if parts.looked and not history:
            newest = (
                f"select j.id, j.updated_at, ({parts.hit()}) as hit from {table} j where {parts.where()} "
                f"order by j.id desc limit {_SCANNED}"
            )
            found = f"select j.id from ({newest}) j where j.hit and {untouched} and {beyond}"
        else:
            found = f"select j.id from {table} j where {parts.where(*parts.looked, untouched, beyond)}"
        branches.append(f"(select x.id from ({found}) x order by x.id limit {limit})")
    if not branches:
        return []
    rows = await links.fetch(
        sql(f"select u.id from ({' union all '.join(branches)}) u order by u.id limit {limit}"), *arguments.values
    )
    return [row["id"] for row in rows]


def _table(*, history: bool) -> str:
    return "{schema}.x_jobs_done" if history else "{schema}.x_jobs"
