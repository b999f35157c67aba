"""x_outbox: staging on a caller's connection, and the relay's fenced claims, marks and failures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from ultijobs._queue.events import NewEvent
from ultijobs._queue.outbox import (
    OutboxDepth,
    OutboxKind,
    OutboxPage,
    OutboxState,
    Published,
    Staged,
    StagedEvent,
    StagedJob,
    Unsent,
)
from ultijobs._queue.records import ActResult, Enqueued, JobState, NewJob, UniqueMode
from ultijobs._queue.storable import refuse_unstorable
from ultijobs._tx.connections import execute_on
from ultijobs.errors import OutboxMisplaced
from ultijobs.postgres import outbox_reads
from ultijobs.postgres.enqueue import distinct, doubled
from ultijobs.postgres.events import event_columns
from ultijobs.postgres.jobs import CHUNK, columns
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["CLAIM", "FAIL", "FORGET", "IDENTITY", "MARK", "RELEASE", "STAGE", "STAGE_EVENTS", "PostgresOutbox"]

# A copy of a database on the same server has its rows, and another oid.
_IDENTITY: Final = """\
s.identity::text || ':' || (select d.oid::text from pg_catalog.pg_database d where d.datname = current_database())"""

IDENTITY: Final = f"select {_IDENTITY} as identity from {{schema}}.x_schema s order by s.version limit 1"

# The transaction says for itself where it is: behind a pooler no address tells.
_HERE: Final = f"""\
here as materialized (
  select h.place, coalesce(h.identity = EXPECTED::text, true) as meant
    from (select {_IDENTITY} as identity,
                 current_database()::text
                   || coalesce(' at ' || host(inet_server_addr()) || ':' || inet_server_port(), '') as place
            from {{schema}}.x_schema s order by s.version limit 1) h)"""

STAGE: Final = f"""\
with {_HERE.replace("EXPECTED", "$16")},
i as (
  insert into {{schema}}.x_outbox
         (id, run_id, name, queue, tenant_id, lane, priority, idempotency_key, max_attempts, unique_mode,
          delay_ms, run_at, enqueued_by, traceparent, code_version, input)
  select t.id::uuid, t.id::uuid, t.name, t.queue, t.tenant_id, t.lane, t.priority::int, t.key, t.max_attempts::int,
         t.mode, (extract(epoch from t.delay::interval) * 1000)::bigint, t.run_at::timestamptz,
         t.enqueued_by, t.traceparent, t.code_version, t.input::json
    from here cross join
         unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
         with ordinality t(id, name, queue, tenant_id, lane, priority, key, max_attempts, mode, delay, run_at,
                           enqueued_by, traceparent, code_version, input, ord)
   where here.meant order by t.ord
  returning id, delay_ms, run_at)
select i.id::text as id,
       case when coalesce(i.run_at, now()) > now() or i.delay_ms > 0 then 'delayed' else 'ready' end as state,
       null as elsewhere
  from i
union all
select null, null, here.place from here where not here.meant"""

STAGE_EVENTS: Final = f"""\
with {_HERE.replace("EXPECTED", "$7")},
i as (
  insert into {{schema}}.x_outbox (id, run_id, kind, name, event_key, input, ttl, enqueued_by)
  select t.id::uuid, t.id::uuid, 'event', t.name, t.key, t.payload::json, t.ttl::interval, t.published_by
    from here cross join
         unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
         with ordinality t(id, name, key, payload, ttl, published_by, ord)
   where here.meant order by t.ord
  returning id)
select here.place as elsewhere from here where not here.meant"""

_PENDING: Final = "{o}.published_at is null and {o}.set_aside_at is null"
_OPEN: Final = "coalesce({o}.published_at, {o}.set_aside_at) is null"
"""The same, in words that keep a look-up by id from walking the index of what is pending."""
_FREE: Final = """\
({o}.claimed_at is null or {o}.claimed_at < now() - $3::interval) and ({o}.next_at is null or {o}.next_at <= now())"""


def _of(condition: str, alias: str) -> str:
    return condition.replace("{o}", alias)


# One probe a transaction, from its first row on; who locks that row has the transaction. The conditions are repeated
# at the lock and at the update, where they are checked on what another claimant has just made of the row.
CLAIM: Final = f"""\
with recursive txs as (
  (select o.tx_id from {{schema}}.x_outbox o where {_of(_PENDING, "o")} order by o.tx_id limit 1)
  union all
  select (select o.tx_id from {{schema}}.x_outbox o
           where {_of(_PENDING, "o")} and o.tx_id > txs.tx_id order by o.tx_id limit 1)
    from txs where txs.tx_id is not null),
firsts as materialized (
  select f.id from txs cross join lateral (
    select o.id, o.claimed_at, o.next_at from {{schema}}.x_outbox o
     where {_of(_PENDING, "o")} and o.tx_id = txs.tx_id order by o.position limit 1) f
   where {_of(_FREE, "f")} limit $1::int),
held as materialized (
  select o.tx_id from {{schema}}.x_outbox o
   where o.id = any(array(select firsts.id from firsts)) and {_of(_OPEN, "o")} and {_of(_FREE, "o")}
     for no key update skip locked),
mine as materialized (
  select m.id from held cross join lateral (
    select w.id, w.position from (
      select o.id, o.position, bool_and({_of(_FREE, "o")}) over (order by o.position) as free
        from {{schema}}.x_outbox o where {_of(_PENDING, "o")} and o.tx_id = held.tx_id
       order by o.position limit $1::int) w
     where w.free) m
   order by held.tx_id, m.position limit $1::int),
taken as (
  update {{schema}}.x_outbox o set claimed_at = now(), claimed_by = $2::text, claim_no = o.claim_no + 1
   where o.id = any(array(select mine.id from mine)) and {_of(_OPEN, "o")} and {_of(_FREE, "o")}
  returning o.*)
select t.id, t.kind, t.tx_id::text as tx, t.claim_no, t.attempts, t.event_key, t.ttl,
       t.name, t.queue, t.tenant_id, t.lane, t.priority,
       t.idempotency_key, t.max_attempts, t.unique_mode, t.run_at, t.enqueued_by, t.traceparent, t.code_version,
       t.input::text as input,
       case when t.delay_ms is not null
            then greatest(interval '0', t.delay_ms * interval '1 ms' - (now() - t.staged_at)) end as delay
  from taken t order by t.tx_id, t.position"""

MARK: Final = """\
update {schema}.x_outbox o
   set published_at = now(), job_id = p.job_id, claimed_at = null, last_error = null, next_at = null
  from unnest($1::uuid[], $2::bigint[], $3::uuid[]) p(id, claim_no, job_id)
 where o.id = p.id and o.claim_no = p.claim_no and o.claimed_at is not null and o.published_at is null
returning o.id"""

FAIL: Final = """\
with failed as (
  update {schema}.x_outbox o
     set attempts = o.attempts + 1, last_error = f.error, claimed_at = null,
         next_at = now() + f.retry_in, set_aside_at = case when f.retry_in is null then now() end
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::interval[]) f(id, claim_no, error, retry_in)
   where o.id = f.id and o.claim_no = f.claim_no and o.claimed_at is not null and o.published_at is null
  returning o.id, o.tx_id, o.position, o.set_aside_at),
behind as (
  update {schema}.x_outbox o
     set set_aside_at = now(), held_by = f.id, claimed_at = null, last_error = 'set aside with ' || f.id::text
    from (select distinct on (failed.tx_id) failed.id, failed.tx_id, failed.position from failed
           where failed.set_aside_at is not null order by failed.tx_id, failed.position) f
   where o.tx_id = f.tx_id and o.position > f.position and o.published_at is null and o.set_aside_at is null
     and o.id <> all(array(select failed.id from failed))
  returning o.id)
select failed.id from failed where failed.set_aside_at is not null union all select behind.id from behind"""

RELEASE: Final = """\
update {schema}.x_outbox o set claimed_at = null
  from unnest($1::uuid[], $2::bigint[]) r(id, claim_no)
 where o.id = r.id and o.claim_no = r.claim_no and o.claimed_at is not null and o.published_at is null"""

FORGET: Final = """\
delete from {schema}.x_outbox where id = any(array(
  select o.id from {schema}.x_outbox o where o.published_at < now() - $1::interval
   order by o.published_at limit $2::int for update skip locked)) returning id"""


class PostgresOutbox:
    """The outbox of one schema. Staging needs no connection but the caller's."""

    def __init__(self, links: Links, reads: Links, sql: Sql) -> None:
        self._links: Final = links
        self._reads: Final = reads
        self._sql: Final = sql

    async def identity(self) -> str:
        return str(await self._links.fetchval(self._sql(IDENTITY)))

    async def stage(self, jobs: Sequence[NewJob], *, tx: object, expected: str | None = None) -> list[Enqueued]:
        refuse_unstorable(jobs)
        kept, double_of = distinct(jobs)
        states: dict[str, str] = {}
        for start in range(0, len(kept), CHUNK):
            rows = await execute_on(tx, self._sql(STAGE), [*columns(kept[start : start + CHUNK]), expected])
            _refuse_elsewhere(rows)
            states |= {row["id"]: row["state"] for row in rows}
        answers = [Enqueued(job.id, job.id, deduped=False, state=JobState(states[str(job.id)])) for job in kept]
        return doubled(jobs, answers, double_of)

    async def stage_events(self, events: Sequence[NewEvent], *, tx: object, expected: str | None = None) -> None:
        for start in range(0, len(events), CHUNK):
            asked = [*event_columns(events[start : start + CHUNK]), expected]
            _refuse_elsewhere(await execute_on(tx, self._sql(STAGE_EVENTS), asked))

    async def claim(self, claimant: str, *, limit: int, lease: timedelta) -> list[Staged]:
        return [_staged(row) for row in await self._links.fetch(self._sql(CLAIM), limit, claimant, lease)]

    async def mark(self, rows: Sequence[Published]) -> list[UUID]:
        asked = [row.id for row in rows], [row.claim_no for row in rows], [row.job_id for row in rows]
        return [row["id"] for row in await self._links.fetch(self._sql(MARK), *asked)]

    async def fail(self, rows: Sequence[Unsent]) -> list[UUID]:
        asked = [row.id for row in rows], [row.claim_no for row in rows]
        why = [row.error for row in rows], [row.retry_in for row in rows]
        return [row["id"] for row in await self._links.fetch(self._sql(FAIL), *asked, *why)]

    async def release(self, rows: Sequence[Staged]) -> None:
        await self._links.fetch(self._sql(RELEASE), [row.id for row in rows], [row.claim_no for row in rows])

    async def rows(
        self,
        states: Sequence[OutboxState] = (),
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> OutboxPage:
        return await outbox_reads.rows(self._reads, self._sql, states, tenant, after, limit)

    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        return await outbox_reads.resolve(self._reads, self._sql, tail, tenant, limit)

    async def depth(self, *, cap: int = 10_000) -> OutboxDepth:
        return await outbox_reads.depth(self._reads, self._sql, cap)

    async def retry(self, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        return await outbox_reads.retry(self._links, self._sql, ids, tenant)

    async def forget(self, older_than: timedelta, *, limit: int = 1_000) -> int:
        return len(await self._links.fetch(self._sql(FORGET), older_than, limit))


def _refuse_elsewhere(rows: Sequence[Any]) -> None:
    if rows and rows[0]["elsewhere"] is not None:
        place = rows[0]["elsewhere"]
        raise OutboxMisplaced(f"tx is on the database {place}, and not on that of the outbox", meta={"database": place})


def _staged(row: Any) -> Staged:
    fence = row["claim_no"], row["attempts"], row["tx"]
    if row["kind"] == OutboxKind.EVENT:
        event = NewEvent(row["id"], row["name"], row["input"], row["event_key"], row["ttl"], row["enqueued_by"])
        return StagedEvent(event, *fence)
    job = NewJob(
        id=row["id"],
        name=row["name"],
        input=row["input"],
        queue=row["queue"],
        idempotency_key=row["idempotency_key"],
        tenant_id=row["tenant_id"],
        max_attempts=row["max_attempts"],
        priority=row["priority"],
        lane=row["lane"],
        unique=UniqueMode(row["unique_mode"]),
        delay=row["delay"],
        run_at=row["run_at"],
        enqueued_by=row["enqueued_by"],
        traceparent=row["traceparent"],
        code_version=row["code_version"],
    )
    return StagedJob(job, *fence)
