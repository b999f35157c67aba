"""Step records: written while the claim holds, immutable once completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.steps import StepAnswer, StepRecord, StepWrite
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["STEP_COLUMNS", "load_steps", "record_steps", "step_of"]

_CHUNK: Final = 1_000
_HELD: Final = StepAnswer(held=True)
_LOST: Final = StepAnswer(held=False)

STEP_COLUMNS: Final = """\
s.run_id, s.name, s.kind, s.status, s.output::text as output, s.error, s.position, s.started_at, s.completed_at,
       s.wake_at, s.tries, s.lease_no, s.event, s.match"""

LOAD: Final = f"""\
select {STEP_COLUMNS}
  from {{schema}}.x_job_steps s where s.run_id = any($1::uuid[]) order by s.run_id, s.position, s.name"""

# The lock on the job's row keeps a settlement or the reaper out until the record is committed.
RECORD: Final = """\
with held as materialized (
  select t.*
    from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[],
                $9::text[], $10::int[], $11::interval[], $12::interval[], $13::text[], $14::text[])
         with ordinality t(job_id, lease_no, run_id, name, kind, status, position, output, error, tries, took, wake_in,
                           event, match, ord)
   cross join lateral (
    select 1 from {schema}.x_jobs j
     where j.id = t.job_id and j.lease_no = t.lease_no and j.lease_until is not null for share) x),
i as (
  insert into {schema}.x_job_steps as s
         (run_id, name, kind, status, position, tries, lease_no, started_at, completed_at, wake_at, event, match, error,
          output)
  select h.run_id, h.name, h.kind, h.status, h.position, h.tries, h.lease_no, now() - h.took,
         case when h.status = 'completed' then now() end, now() + h.wake_in, h.event, h.match, h.error, h.output::json
    from held h order by h.ord
  on conflict (run_id, name) do update
     set kind = excluded.kind, status = excluded.status, position = excluded.position, tries = excluded.tries,
         lease_no = excluded.lease_no, completed_at = excluded.completed_at,
         wake_at = coalesce(s.wake_at, excluded.wake_at), event = excluded.event, match = excluded.match,
         error = excluded.error, output = excluded.output
   where s.status <> 'completed'
  returning s.run_id, s.name, s.wake_at)
select i.run_id, i.name, i.wake_at from i
union all
select h.run_id, h.name, s.wake_at
  from held h
  left join lateral (
    select r.wake_at from {schema}.x_job_steps r where r.run_id = h.run_id and r.name = h.name limit 1) s on true
 where ((h.run_id, h.name) in (select i.run_id, i.name from i)) is not true"""


async def load_steps(links: Links, sql: Sql, run_ids: Sequence[UUID]) -> Mapping[UUID, list[StepRecord]]:
    """See `Driver.load_steps`."""
    found: dict[UUID, list[StepRecord]] = {run_id: [] for run_id in run_ids}
    if not found:
        return found
    for row in await links.fetch(sql(LOAD), list(found)):
        found[row["run_id"]].append(step_of(row))
    return found


async def record_steps(links: Links, sql: Sql, writes: Sequence[StepWrite]) -> list[StepAnswer]:
    """See `Driver.record_steps`."""
    answers = [_LOST] * len(writes)
    for turn in _turns(writes):
        place = {(writes[at].run_id, writes[at].name): at for at in turn}
        for row in await links.fetch(sql(RECORD), *_columns([writes[at] for at in turn])):
            wake_at = row[2]
            answers[place[row[0], row[1]]] = _HELD if wake_at is None else StepAnswer(held=True, wake_at=wake_at)
    return answers


def step_of(row: Record) -> StepRecord:
    return StepRecord(
        run_id=row["run_id"],
        name=row["name"],
        kind=row["kind"],
        status=row["status"],
        output=row["output"],
        error=row["error"],
        position=row["position"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        wake_at=row["wake_at"],
        tries=row["tries"],
        lease_no=row["lease_no"],
        event=row["event"],
        match=row["match"],
    )


def _turns(writes: Sequence[StepWrite]) -> list[list[int]]:
    """Places in `writes`, sorted by job and cut so that one statement never writes the same record twice."""
    order = sorted(range(len(writes)), key=lambda at: writes[at].job_id)
    turns: list[list[int]] = []
    seen: list[set[tuple[UUID, str]]] = []
    for at in order:
        record = (writes[at].run_id, writes[at].name)
        for turn, known in zip(turns, seen, strict=True):
            if record not in known and len(turn) < _CHUNK:
                turn.append(at)
                known.add(record)
                break
        else:
            turns.append([at])
            seen.append({record})
    return turns


def _sparse(values: list[object]) -> list[object]:
    """Nothing for a column without any value: `unnest` fills the shorter arrays with nulls."""
    return values if any(value is not None for value in values) else []


def _columns(writes: Sequence[StepWrite]) -> tuple[list[object], ...]:
    return (
        [write.job_id for write in writes],
        [write.lease_no for write in writes],
        [write.run_id for write in writes],
        [write.name for write in writes],
        [write.kind.value for write in writes],
        [write.status.value for write in writes],
        [write.position for write in writes],
        [write.output for write in writes],
        _sparse([write.error for write in writes]),
        [write.tries for write in writes],
        [write.took for write in writes],
        _sparse([write.wake_in for write in writes]),
        _sparse([write.event for write in writes]),
        _sparse([write.match for write in writes]),
    )
