"""Due rows that nobody claims, by name and by tenant, in one statement: from the heads of their streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ultijobs._queue.views import Count, DueGroup
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.stepping import IN_STREAM, STREAMS

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["DUE", "due"]

_SEEN: Final = 2_000
"""Rows at the head of a stream that are looked at; 100,000 of all, or 20 of each where there are so many."""

# $1 queues, $2 names that are left out, $3 tenants that are counted all the same, $4 groups at most of either kind.
# What nobody claims stays at the head of its stream. A tenant's rows may lie in its own lane or among those of others.
DUE: Final = f"""\
with recursive {STREAMS},
mine as materialized (
  select s.*, greatest(20, least({_SEEN}, 100000 / count(*) over ())) as most
    from streams s where s.queue = any($1::text[])),
heads as materialized (
  select s.queue, s.lane ~ '(^|,)t:' as own, x.name, x.tenant_id, x.due_at,
         count(*) over (partition by s.n) >= s.most as cut
    from mine s cross join lateral (
    select j.name, j.tenant_id, j.due_at from {{schema}}.x_jobs j where {IN_STREAM} and j.run_at <= now()
     order by j.run_at, j.id limit s.most) x),
cuts as (
  select h.queue, bool_or(h.cut) as cut, bool_or(h.cut and not h.own) as shared from heads h group by h.queue),
groups as (
  select h.queue, h.name, case when h.name = any($2::text[]) then h.tenant_id end as tenant,
         count(*) as n, min(h.due_at) as oldest, bool_or(h.cut) as cut
    from heads h where h.name <> all($2::text[]) or h.tenant_id = any($3::text[]) group by 1, 2, 3),
ranked as (
  select g.*, row_number() over (partition by g.tenant is null
                order by case when g.tenant is null then 0 else -g.n end, g.name, g.queue, g.tenant) as place
    from groups g)
select r.queue, r.name, r.tenant, r.n, r.oldest,
       case when r.tenant is null then c.cut else r.cut or c.shared end as cut,
       case when r.tenant is not null then (
         select (d.declaration -> 'limits')::text from {{schema}}.x_catalog d
          where d.kind in ('job', 'backfill') and d.name = r.name limit 1) end as limits
  from ranked r join cuts c on c.queue = r.queue
 where r.place <= $4::int order by r.tenant is not null, r.place"""


async def due(
    links: Links, sql: Sql, queues: Sequence[str], without: Sequence[str], tenants: Sequence[str], limit: int
) -> list[DueGroup]:
    """See `InspectionStore.due`."""
    rows = await links.fetch(sql(DUE), list(queues), list(without), list(tenants), limit)
    return [_group(row) for row in rows]


def _group(row: Record) -> DueGroup:
    count = Count(row["n"], "capped" if row["cut"] else "exact")
    return DueGroup(row["queue"], row["name"], row["tenant"], count, row["oldest"], _limits(row["limits"]))


def _limits(text: str | None) -> Mapping[str, object]:
    """An older release's declaration has none, a newer one's may be anything."""
    found: Any = None if text is None else json.loads(text)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
