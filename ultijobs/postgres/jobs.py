"""Enqueue: insert, or answer with the row that holds the key; alone, by the dozen, or inside a caller's transaction.

All parameters go as text and are cast in the statement, and ids come back as text, so that codecs which a caller set
on its own connection make no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from ultijobs._queue.records import Enqueued, JobState, NewJob, UniqueMode
from ultijobs._tx.connections import Joined
from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.sql import Sql

__all__ = ["CHUNK", "ENQUEUE_LIMIT", "Key", "columns", "insert", "key_of", "key_order"]

Key: TypeAlias = tuple[str, str, str]
"""The dedupe space: name, tenant (empty for none), key."""

CHUNK: Final = 1_000
ENQUEUE_LIMIT: Final = 30.0
"""Seconds for one statement: it may wait for another transaction that holds the same key."""

_TRIES: Final = 5
_COLUMNS: Final = """\
id, run_id, name, queue, tenant_id, lane, priority, idempotency_key, max_attempts, unique_mode, \
run_at, due_at, behind, enqueued_by, traceparent, code_version, input"""

# Nothing comes back when the holder of the key vanished, or appeared after our snapshot: the statement is run again.
ENQUEUE: Final = f"""\
with i as (
  insert into {{schema}}.x_jobs ({_COLUMNS})
  select n.id, n.id, $2::text, $3::text, $4::text, $5::text, $6::text::int, $7::text, $8::text::int, $9::text,
         n.run_at, n.run_at, null, $12::text, $13::text, $14::text, $15::text::json
    from (select $1::text::uuid as id,
                 greatest(now(), now() + $10::text::interval, $11::text::timestamptz) as run_at) n
  on conflict do nothing
  returning id, run_id, run_at)
select i.id::text, i.run_id::text, 'new' as origin, case when i.run_at > now() then 'delayed' else 'ready' end as state,
       case when $16::text = 'tell' and i.run_at <= now()
            then pg_notify('{{channel}}', 'q:' || $3::text)::text end
  from i
union all
select j.id::text, j.run_id::text, 'held',
       case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end, null
  from {{schema}}.x_jobs j
 where j.name = $2::text and coalesce(j.tenant_id, '') collate "C" = coalesce($4::text, '')
   and j.idempotency_key = $7::text
   and j.key_held and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null
   and not exists (select from i)
union all
select j.id::text, j.run_id::text, 'held',
       case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end, null
  from {{schema}}.x_jobs j
 where j.id = $1::text::uuid and not exists (select from i)
limit 1"""

# A subquery with a limit is never merged into a join: each row costs one look into an index in every plan.
# `behind`: a live row of the same key, whether it has let go of the key or is seen just before it does.
ENQUEUE_MANY: Final = f"""\
with n as materialized (
  select t.id::uuid as id, t.name, t.queue, t.tenant_id, t.lane, t.priority::int as priority, t.key,
         t.max_attempts::int as max_attempts, t.mode,
         greatest(now(), now() + t.delay::interval, t.run_at::timestamptz) as run_at,
         t.enqueued_by, t.traceparent, t.code_version, t.input::json as input, t.ord
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
         with ordinality t(id, name, queue, tenant_id, lane, priority, key, max_attempts, mode, delay, run_at,
                           enqueued_by, traceparent, code_version, input, ord)),
i as (
  insert into {{schema}}.x_jobs ({_COLUMNS})
  select n.id, n.id, n.name, n.queue, n.tenant_id, n.lane, n.priority, n.key, n.max_attempts, n.mode,
         n.run_at, n.run_at,
         case when n.mode = 'rerun' then coalesce(
           (select b.id from {{schema}}.x_jobs b
             where b.name = n.name and coalesce(b.tenant_id, '') collate "C" = coalesce(n.tenant_id, '')
               and b.idempotency_key = n.key and not b.key_held
               and b.state in ('ready', 'running', 'suspended') and b.idempotency_key is not null
             order by b.created_at desc limit 1),
           (select b.id from {{schema}}.x_jobs b
             where b.name = n.name and coalesce(b.tenant_id, '') collate "C" = coalesce(n.tenant_id, '')
               and b.idempotency_key = n.key and b.key_held
               and b.state in ('ready', 'running', 'suspended') and b.idempotency_key is not null)) end,
         n.enqueued_by, n.traceparent, n.code_version, n.input
    from n order by n.ord
  on conflict do nothing
  returning id, run_id, run_at, queue, behind),
told as materialized (
  select pg_notify('{{channel}}', 'q:' || d.queue)::text
    from (select distinct i.queue from i
           where i.run_at <= now() and i.behind is null and i.queue = any($16::text[])) d)
select i.id::text as asked, i.id::text as id, i.run_id::text as run_id, 'new' as origin,
       case when i.run_at > now() then 'delayed' else 'ready' end as state, (select count(*) from told)::text as told
  from i
union all
select n.id::text, coalesce(h.id, s.id)::text, coalesce(h.run_id, s.run_id)::text, 'held',
       case when coalesce(h.state, s.state) = 'ready' and coalesce(h.run_at, s.run_at) > now() then 'delayed'
            else coalesce(h.state, s.state) end, null
  from n
  left join lateral (
    select j.id, j.run_id, j.state, j.run_at from {{schema}}.x_jobs j
     where j.name = n.name and coalesce(j.tenant_id, '') collate "C" = coalesce(n.tenant_id, '')
       and j.idempotency_key = n.key and j.key_held
       and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null limit 1) h on true
  left join lateral (
    select j.id, j.run_id, j.state, j.run_at from {{schema}}.x_jobs j
     where h.id is null and j.id = n.id limit 1) s on true
 where (n.id in (select i.id from i)) is not true"""


async def insert(
    connection: Joined, sql: Sql, jobs: Sequence[NewJob], tell: frozenset[str], limit: float
) -> list[Enqueued]:
    """Inserts or dedupes `jobs`, whose keys differ; tells the queues in `tell`. The caller owns the transaction."""
    if len(jobs) == 1 and jobs[0].unique is not UniqueMode.RERUN:
        return [await _insert_one(connection, sql, jobs[0], tell, limit)]
    answers: dict[UUID, Enqueued] = {}
    by_id = {job.id: job for job in jobs}
    left = sorted(jobs, key=key_order)
    for _ in range(_TRIES):
        unanswered: list[NewJob] = []
        for start in range(0, len(left), CHUNK):
            chunk = left[start : start + CHUNK]
            arrays = columns(chunk)
            for row in await connection.fetch(sql(ENQUEUE_MANY), *arrays, sorted(tell), timeout=limit):
                asked = UUID(row["asked"])
                if row["id"] is None:
                    unanswered.append(by_id[asked])
                else:
                    answers[asked] = _enqueued(by_id[asked], row)
        left = unanswered
        if not left:
            return [answers[job.id] for job in jobs]
    raise _unsettled(left[0])


async def _insert_one(connection: Joined, sql: Sql, job: NewJob, tell: frozenset[str], limit: float) -> Enqueued:
    for _ in range(_TRIES):
        rows = await connection.fetch(
            sql(ENQUEUE), *_texts(job), "tell" if job.queue in tell else "hush", timeout=limit
        )
        if rows:
            return _enqueued(job, rows[0])
    raise _unsettled(job)


def key_of(job: NewJob) -> Key | None:
    return None if job.idempotency_key is None else (job.name, job.tenant_id or "", job.idempotency_key)


def key_order(job: NewJob) -> tuple[Key, UUID]:
    """The order in which every enqueue takes its keys."""
    return (key_of(job) or ("", "", ""), job.id)


def _texts(job: NewJob) -> tuple[str | None, ...]:
    return (
        str(job.id),
        job.name,
        job.queue,
        job.tenant_id,
        job.lane,
        str(job.priority),
        job.idempotency_key,
        str(job.max_attempts),
        job.unique.value,
        None if job.delay is None else f"{job.delay.total_seconds():.6f} s",
        None if job.run_at is None else job.run_at.isoformat(),
        job.enqueued_by,
        job.traceparent,
        job.code_version,
        job.input,
    )


def columns(jobs: Sequence[NewJob]) -> list[list[str | None]]:
    """The jobs as the arrays that a statement for many takes, column by column, all of them text."""
    return [list(column) for column in zip(*map(_texts, jobs), strict=True)]


def _enqueued(asked: NewJob, row: Any) -> Enqueued:
    if row["origin"] == "new":
        return Enqueued(asked.id, asked.id, deduped=False, state=JobState(row["state"]))
    return Enqueued(UUID(row["id"]), UUID(row["run_id"]), deduped=True, state=JobState(row["state"]))


def _unsettled(job: NewJob) -> DriverUnavailable:
    return DriverUnavailable(
        f"the holder of the key {job.idempotency_key!r} of {job.name!r} changed {_TRIES} times while it was asked for",
        fix="enqueue again",
    )
