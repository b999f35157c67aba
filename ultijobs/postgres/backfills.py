"""x_backfills: one row per pass of a backfill, written under the claim of its job, kept for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ultijobs._queue.backfills import PassMark, PassRow, PassStart, PassStatus, Surveyed, running
from ultijobs._queue.records import Enqueued, JobState
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = [
    "BEGIN",
    "COMPLETED",
    "END",
    "LIVE",
    "MARK",
    "PASSES",
    "RECONCILE",
    "RIVAL",
    "SURVEY",
    "TAKE",
    "TURN",
    "PostgresBackfills",
]

_STORED: Final = """\
b.run_id, b.job_id, b.name, b.checksum, b.app_version, b.environment, b.forced, b.rows, b.batches, b.sweep, b.remaining,
  b.counted_at, b.counted_rows, b.cursor::text as cursor, b.in_hand, b.in_hand_to::text as in_hand_to, b.started_at,
  b.resumed_at, b.resumed_rows, b.updated_at, b.completed_at"""

# What the job says counts for more than what its last claim wrote: nobody writes for a worker that is gone.
_STATUS: Final = """\
case when b.status = 'completed' then 'completed'
     when j.state in ('ready', 'running', 'suspended') then 'running'
     when j.state in ('dead', 'failed') then 'failed'
     when j.state = 'cancelled' then 'cancelled'
     when b.status = 'running' then 'failed'
     else b.status end"""

_JOB: Final = """\
left join lateral (
    select j.state, j.run_at, j.error_code, j.last_error from {schema}.x_jobs j where j.id = b.job_id
    union all
    select j.state, j.run_at, j.error_code, j.last_error from {schema}.x_jobs_done j where j.id = b.job_id
    limit 1) j on true"""

_PASS: Final = f"""\
{_STORED}, {_STATUS} as status,
  case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as job_state,
  j.error_code, j.last_error"""

_HELD: Final = """\
held as materialized (
  select j.id from {schema}.x_jobs j
   where j.id = $2::uuid and j.lease_no = $3::bigint and j.lease_until is not null for share)"""

# The key of a job is told apart by tenant, and what a backfill declares of that may change between two deploys.
TURN: Final = """\
select pg_advisory_xact_lock(hashtextextended('ultijobs:backfill:' || $1::text || ':' || $2::text, 0))::text"""

RIVAL: Final = """\
select j.id from {schema}.x_backfills b join {schema}.x_jobs j on j.id = b.job_id
 where b.name = $1::text and b.run_id <> $2::uuid and b.status <> 'completed'
   and j.state in ('ready', 'running', 'suspended')
 limit 1"""

LIVE: Final = """\
select j.id, j.run_id, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state
  from {schema}.x_jobs j
 where j.name = $1::text and j.idempotency_key = $1::text and j.key_held
   and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null
 order by j.id limit 1"""

BEGIN: Final = f"""\
with {_HELD},
put as (
  insert into {{schema}}.x_backfills as b
         (run_id, job_id, lease_no, name, status, checksum, app_version, environment, forced)
  select $1::uuid, h.id, $3::bigint, $4::text, 'running', $5::text, $6::text, $7::text, $8::boolean from held h
  on conflict (run_id) do update
     set status = 'running', lease_no = excluded.lease_no, resumed_at = now(), resumed_rows = b.rows, updated_at = now()
   where b.status <> 'completed'
  returning {_STORED}, b.status, 'running' as job_state, null::text as error_code, null::text as last_error)
select * from put
union all
select {_STORED}, b.status, 'running', null, null from {{schema}}.x_backfills b
 where b.run_id = $1::uuid and exists (select from held) and not exists (select from put)"""

TAKE: Final = f"""\
with {_HELD},
put as (
  update {{schema}}.x_backfills b set in_hand = $4::bigint, in_hand_to = $5::text::json
   where b.run_id = $1::uuid and b.status <> 'completed' and exists (select from held))
select count(*) > 0 from held"""

MARK: Final = f"""\
with {_HELD},
put as (
  update {{schema}}.x_backfills b
     set cursor = $4::text::json, rows = $5::bigint, batches = $6::bigint, sweep = $7::int,
         remaining = coalesce($8::bigint, b.remaining),
         counted_at = case when $8::bigint is null then b.counted_at else now() end,
         counted_rows = case when $8::bigint is null then b.counted_rows else $5::bigint end,
         in_hand = $9::bigint, in_hand_to = $10::text::json, lease_no = $3::bigint, updated_at = now()
   where b.run_id = $1::uuid and b.status <> 'completed' and exists (select from held))
select count(*) > 0 from held"""

END: Final = f"""\
with {_HELD},
put as (
  update {{schema}}.x_backfills b
     set status = $4::text, lease_no = $3::bigint, updated_at = now(), remaining = coalesce($5::bigint, b.remaining),
         cursor = case when $4::text = 'completed' then null else b.cursor end,
         completed_at = case when $4::text = 'completed' then now() end
   where b.run_id = $1::uuid and b.status <> 'completed' and exists (select from held))
select count(*) > 0 from held"""

COMPLETED: Final = f"""\
select {_PASS}
  from (select b.* from {{schema}}.x_backfills b where b.name = $1::text and b.status = 'completed'
         order by b.started_at desc, b.run_id desc limit 1) b
  {_JOB}"""

PASSES: Final = f"""\
select p.* from (
  select {_PASS} from {{schema}}.x_backfills b {_JOB}
   where ($1::text is null or b.name = $1::text) and ($2::uuid is null or b.run_id = $2::uuid)) p
 where cardinality($3::text[]) = 0 or p.status = any($3::text[])
 order by p.started_at desc, p.run_id desc limit $4::int"""

SURVEY: Final = f"""\
with known as materialized (
  select t.name from unnest($1::text[]) t(name) union select b.name from {{schema}}.x_backfills b)
select k.name as of, case w.which when 1 then 'newest' else 'completed' end as which, {_PASS},
       l.id as live_job, l.state as live_state
  from known k
  left join lateral (
    select j.id, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state
      from {{schema}}.x_jobs j
     where j.name = k.name and j.idempotency_key = k.name and j.key_held
       and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null
     order by j.id desc limit 1) l on true
 cross join (values (1), (2)) w(which)
  left join lateral (
    select x.* from {{schema}}.x_backfills x
     where x.name = k.name and (w.which = 1 or x.status = 'completed')
     order by x.started_at desc, x.run_id desc limit 1) b on true
  {_JOB}
 order by k.name, w.which limit 2000"""

RECONCILE: Final = f"""\
with ended as (
  select b.run_id, {_STATUS} as status from {{schema}}.x_backfills b {_JOB} where b.status = 'running')
update {{schema}}.x_backfills b set status = e.status from ended e
 where b.run_id = e.run_id and b.status = 'running' and e.status <> 'running'
returning b.run_id"""

_LIMIT: Final = 30.0
_COLUMNS: Final = tuple(field.name for field in fields(PassRow))


class PostgresBackfills:
    """`BackfillStore` on Postgres."""

    __slots__ = ("_control", "_reads", "_sql")

    def __init__(self, control: Links, reads: Links, sql: Sql) -> None:
        self._control: Final = control
        self._reads: Final = reads
        self._sql: Final = sql

    async def begin(self, start: PassStart) -> PassRow | None:
        rival = row = None
        # One after the other by name: each sees what the one before has opened.
        async with self._control.hold() as connection, connection.transaction(isolation="read_committed"):
            await connection.execute(self._sql(TURN), self._sql.quoted, start.name, timeout=_LIMIT)
            rival = await connection.fetchval(self._sql(RIVAL), start.name, start.run_id, timeout=_LIMIT)
            if rival is None:
                row = await connection.fetchrow(
                    self._sql(BEGIN),
                    start.run_id,
                    start.job_id,
                    start.lease_no,
                    start.name,
                    start.checksum,
                    start.app_version,
                    start.environment,
                    start.forced,
                    timeout=_LIMIT,
                )
        if rival is not None:
            raise running(start.name, rival)
        return None if row is None else _row(row)

    async def live(self, name: str) -> Enqueued | None:
        row = await self._control.fetchrow(self._sql(LIVE), name)
        if row is None:
            return None
        return Enqueued(row["id"], row["run_id"], deduped=True, state=JobState(row["state"]))

    async def take(self, start: PassStart, rows: int, last: str) -> bool:
        return await self._held(TAKE, start.run_id, start.job_id, start.lease_no, rows, last)

    async def mark(self, mark: PassMark) -> bool:
        return await self._held(
            MARK,
            mark.run_id,
            mark.job_id,
            mark.lease_no,
            mark.cursor,
            mark.rows,
            mark.batches,
            mark.sweep,
            mark.remaining,
            mark.in_hand,
            mark.in_hand_to,
        )

    async def end(self, start: PassStart, status: PassStatus, *, remaining: int | None = None) -> bool:
        return await self._held(END, start.run_id, start.job_id, start.lease_no, status.value, remaining)

    async def completed(self, name: str) -> PassRow | None:
        row = await self._control.fetchrow(self._sql(COMPLETED), name)
        return None if row is None else _row(row)

    async def passes(
        self,
        *,
        name: str | None = None,
        run_id: UUID | None = None,
        statuses: Sequence[PassStatus] = (),
        limit: int = 100,
    ) -> list[PassRow]:
        words = [status.value for status in statuses]
        return [_row(row) for row in await self._reads.fetch(self._sql(PASSES), name, run_id, words, limit)]

    async def survey(self, names: Sequence[str]) -> list[Surveyed]:
        found: dict[str, dict[str, Any]] = {}
        for row in await self._reads.fetch(self._sql(SURVEY), sorted(set(names))):
            known = found.setdefault(row["of"], {"live_job": row["live_job"], "live_state": row["live_state"]})
            known[row["which"]] = None if row["run_id"] is None else _row(row)
        return [Surveyed(name, **known) for name, known in found.items()]

    async def reconcile(self) -> int:
        return len(await self._control.fetch(self._sql(RECONCILE)))

    async def _held(self, statement: str, *arguments: object) -> bool:
        return bool(await self._control.fetchval(self._sql(statement), *arguments))


def _row(row: Record) -> PassRow:
    return PassRow(**{name: row[name] for name in _COLUMNS})
