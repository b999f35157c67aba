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
  select j.id, j.run_id, j.name, j.queue, j.tenant_id, j.stop_reason, j.fingerprint, j.finished_at,
    j.claims > j.attempt as again,
         {hit} as hit
    from {{schema}}.x_jobs j where j.state in ('dead', 'failed') and {where}
   order by j.finished_at desc, j.id desc limit {read}),
groups as materialized (
  select s.stop_reason, s.fingerprint, count(*) as n, min(s.finished_at) as first_at, max(s.finished_at) as last_at,
         count(distinct s.tenant_id) as tenants, (array_agg(s.id order by s.finished_at desc, s.id desc))[1:3] as sample
    from seen s where s.hit group by s.stop_reason, s.fingerprint order by n desc, last_at desc limit {limit}),
probed as (
  select p.stop_reason, p.fingerprint, count(*) as n
    from (select s.stop_reason, s.fingerprint, s.run_id from seen s where s.hit and s.again limit {probed}) p
   where (select count(*) from {{schema}}.x_job_attempts a where a.run_id = p.run_id and a.outcome in ('dead',
     'failed')) > 1
   group by p.stop_reason, p.fingerprint),
names as (
  select x.stop_reason, x.fingerprint, json_object_agg(x.name, x.n order by x.n desc) as jobs
    from (select s.stop_reason, s.fingerprint, s.name, count(*) as n from seen s where s.hit group by 1, 2,
      3) x group by 1, 2),
queues as (
  select x.stop_reason, x.fingerprint, json_object_agg(x.queue, x.n order by x.n desc) as queues
    from (select s.stop_reason, s.fingerprint, s.queue, count(*) as n from seen s where s.hit group by 1, 2,
      3) x group by 1, 2)
select g.*, (select count(*) from seen) as seen, newest.error_code, newest.last_error, names.jobs::text as jobs,
       queues.queues::text as queues, coalesce(probed.n, 0) as died_again,
       (select t.name from {{schema}}.x_job_steps t where t.run_id = newest.run_id and t.status = 'failed'
         order by t.position desc limit 1) as step,
       (select count(*) from (
          select a.run_id from {{schema}}.x_jobs r
           cross join lateral (select a.run_id from {{schema}}.x_job_attempts a
                                where a.run_id = r.run_id and a.outcome in ('dead', 'failed') limit 1) a
           where r.fingerprint = g.fingerprint and r.state in ('ready', 'running', 'suspended') limit {probed}) x)
             as retried
  from groups g
  join {{schema}}.x_jobs newest on newest.id = g.sample[1]
  join names on names.stop_reason is not distinct from g.stop_reason and names.fingerprint is not distinct
    from g.fingerprint
  join queues on queues.stop_reason is not distinct from g.stop_reason and queues.fingerprint is not distinct
    from g.fingerprint
  left join probed on probed.stop_reason is not distinct from g.stop_reason
    and probed.fingerprint is not distinct from g.fingerprint
 order by g.n desc, g.last_at desc, g.sample"""


async def causes(links: Links, sql: Sql, where: Where, limit: int) -> list[Cause]:
    """See `InspectionStore.causes`."""
    if not touches(where, history=False):
        return []
    arguments = Arguments()
    parts = conditions(where, arguments, history=False)
    statement = _CAUSES.format(
        hit=f"({parts.hit()})",
        where=parts.where(),
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
