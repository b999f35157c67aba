"""How many jobs each tenant, queue or name has, by state, of the rows that a bounded reading meets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ultijobs._queue.views import Count, Tally
from ultijobs._queue.where import Field, Where
from ultijobs.postgres.filters import Arguments, conditions, touches
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import in_time
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["tally"]

_READ: Final = 10_000
_COLUMNS: Final = {Field.TENANT: "tenant_id", Field.QUEUE: "queue", Field.JOB: "name"}

_TALLY: Final = """\
with seen as materialized (
  select j.{column} as value, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state,
         coalesce(j.finished_at, j.due_at) as at, {hit} as hit
    from {{schema}}.x_jobs j where {where} limit {read}),
parts as materialized (
  select s.value, s.state, count(*) as n, min(s.at) as first_at, max(s.at) as last_at
    from seen s where s.hit group by s.value, s.state)
select p.value, sum(p.n)::bigint as n, json_object_agg(p.state, p.n)::text as states, min(p.first_at) as first_at,
       max(p.last_at) as last_at, (select count(*) from seen) as seen
  from parts p group by p.value order by n desc, p.value nulls last limit {limit}"""


async def tally(links: Links, sql: Sql, where: Where, by: Field, limit: int) -> list[Tally]:
    """See `InspectionStore.tally`."""
    if not touches(where, history=False):
        return []
    arguments = Arguments()
    parts = conditions(where, arguments, history=False)
    statement = _TALLY.format(
        column=_COLUMNS[by],
        hit=f"({parts.hit()})",
        where=parts.where(),
        read=_READ,
        limit=arguments.add(limit) + "::int",
    )
    return [_tally(row) for row in await links.fetch(sql(statement), *arguments.values)]


def _tally(row: Record) -> Tally:
    states: dict[str, int] = json.loads(row["states"])
    count = Count(row["n"], "capped" if row["seen"] >= _READ else "exact")
    return Tally(row["value"], count, states, in_time(row["first_at"]), in_time(row["last_at"]))
