"""Stopped jobs by what stopped them, from the newest that a bounded reading meets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ultijobs._queue.views import Cause, Count
from ultijobs._queue.where import Where
from ultijobs.postgres.filters import Arguments, conditions, touches
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["causes"]

_READ: Final = 10_000
_PROBED: Final = 1_000

# A row that was claimed more often than its attempts say was retried by hand, slept, or was handed back: only of these
# are the attempts looked up.
_CAUSES: Final = """\
with seen as materialized (
  select j.run_id, j.name, j.queue, j.tenant_id, j.stop_reason, j.fingerprint, j.finished_at,
         j.claims > j.attempt as again, {hit} as hit
    from {{schema}}.x_jobs j where j.state in ('dead', 'failed') and {where}
   order by j.finished_at desc, j.id desc limit {read}),
parts as materialized (
  select s.stop_reason, s.fingerprint, s.name, s.queue, count(*) as n, min(s.finished_at) as first_at,
         max(s.finished_at) as last_at
    from seen s where s.hit group by s.stop_reason, s.fingerprint, s.name, s.queue),
groups as materialized (
  select p.stop_reason, p.fingerprint, sum(p.n)::bigint as n, min(p.first_at) as first_at, max(p.last_at) as last_at
    from parts p group by p.stop_reason, p.fingerprint order by n desc, last_at desc limit {limit}),
tenants as materialized (
  select x.stop_reason, x.fingerprint, count(x.tenant_id) as n
    from (select s.stop_reason, s.fingerprint, s.tenant_id from seen s where s.hit group by 1, 2, 3) x group by 1, 2),
names as materialized (
  select x.stop_reason, x.fingerprint, json_object_agg(x.name, x.n order by x.n desc)::text as told
    from (select p.stop_reason, p.fingerprint, p.name, sum(p.n) as n from parts p group by 1, 2, 3) x group by 1, 2),
queues as materialized (
  select x.stop_reason, x.fingerprint, json_object_agg(x.queue, x.n order by x.n desc)::text as told
    from (select p.stop_reason, p.fingerprint, p.queue, sum(p.n) as n from parts p group by 1, 2, 3) x group by 1, 2),
again as materialized (
  select a.stop_reason, a.fingerprint, count(*) as n
    from (select s.stop_reason, s.fingerprint, s.run_id from seen s where s.hit and s.again limit {probed}) a
   where (select count(*) from {{schema}}.x_job_attempts t
           where t.run_id = a.run_id and t.outcome in ('dead', 'failed')) > 1
   group by a.stop_reason, a.fingerprint)
select g.*, (select count(*) from seen) as seen, newest.sample, newest.error_code, newest.last_error,
       (select x.n from tenants x where {same}) as tenants, (select x.told from names x where {same}) as jobs,
       (select x.told from queues x where {same}) as queues,
       coalesce((select x.n from again x where {same}), 0) as died_again,
       (select t.name from {{schema}}.x_job_steps t where t.run_id = newest.run_id and t.status = 'failed'
         order by t.position desc limit 1) as step,
       (select count(*) from (
          select from {{schema}}.x_jobs r
           where r.fingerprint = g.fingerprint and r.state in ('ready', 'running', 'suspended')
             and exists (select from {{schema}}.x_job_attempts t
                          where t.run_id = r.run_id and t.outcome in ('dead', 'failed'))
           limit {probed}) x) as retried
  from groups g
 cross join lateral (
   select (array_agg(n.id order by n.finished_at desc, n.id desc))[1:3] as sample,
          (array_agg(n.run_id order by n.finished_at desc, n.id desc))[1] as run_id,
          (array_agg(n.error_code order by n.finished_at desc, n.id desc))[1] as error_code,
          (array_agg(n.last_error order by n.finished_at desc, n.id desc))[1] as last_error
     from ({newest}) n) newest
 order by g.n desc, g.last_at desc, newest.sample"""

# The index on causes finds the newest of one; a null has its own way through it.
_NEWEST: Final = """\
(select j.id, j.run_id, j.finished_at, j.error_code, j.last_error from {{schema}}.x_jobs j
  where j.state in ('dead', 'failed') and {same} and {where} and {hit} order by j.finished_at desc limit 3)"""
_SAME: Final = (
    "j.stop_reason = g.stop_reason and j.fingerprint = g.fingerprint",
    "g.fingerprint is null and j.stop_reason = g.stop_reason and j.fingerprint is null",
    "g.stop_reason is null and j.stop_reason is null and j.fingerprint is not distinct from g.fingerprint",
)


async def causes(links: Links, sql: Sql, where: Where, limit: int) -> list[Cause]:
    """See `InspectionStore.causes`."""
    if not touches(where, history=False):
        return []
    arguments = Arguments()
    parts = conditions(where, arguments, history=False)
    statement = _CAUSES.format(
        hit=f"({parts.hit()})",
        where=parts.where(),
        same="x.stop_reason is not distinct from g.stop_reason and x.fingerprint is not distinct from g.fingerprint",
        newest=" union all ".join(_NEWEST.format(same=same, where=parts.where(), hit=parts.hit()) for same in _SAME),
        read=_READ,
        probed=_PROBED,
        limit=arguments.add(limit) + "::int",
    )
    return [_cause(row) for row in await links.fetch(sql(statement), *arguments.values)]


def _cause(row: Record) -> Cause:
    cut = row["seen"] >= _READ
    return Cause(
        stop_reason=row["stop_reason"],
        fingerprint=row["fingerprint"],
        error_code=row["error_code"],
        error=row["last_error"],
        count=Count(row["n"], "capped" if cut else "exact"),
        first_at=row["first_at"],
        last_at=row["last_at"],
        jobs=_counts(row["jobs"]),
        queues=_counts(row["queues"]),
        tenants=row["tenants"],
        step=row["step"],
        sample=tuple(row["sample"]),
        retried=row["retried"] + row["died_again"],
        died_again=row["died_again"],
    )


def _counts(text: str) -> dict[str, int]:
    counts: dict[str, int] = json.loads(text)
    return counts
