"""Claiming: due rows of known streams, in one statement that locks no more rows than it takes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.claims import Allowance, ClaimAsk, ClaimedJob
from ultijobs._queue.lanes import Division, Round, Turns, capped_name, tenant_of
from ultijobs._queue.records import UniqueMode
from ultijobs.postgres.links import Links
from ultijobs.postgres.slots import SlotMaker
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.streams import Stream, StreamBook, lower_bound, readable

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["Claimer"]

_NEXT_ROWS: Final = 200
_UNIQUE: Final = 13
_MODES: Final = {mode.value: mode for mode in UniqueMode}

# $2, $3 queues and their free slots; $4 to $10 streams: queue, lane, rank, where to begin (2), rows at most, whether
# rows of tenants are left out; $11 names, $12 jobs and $13 tenants that are left out, $14 rows at most, $15 lease.
_DUE: Final = """\
select j.id from {schema}.x_jobs j
       where j.state in ('ready', 'suspended') and j.behind is null
         and j.queue = s.queue and j.lane = s.lane and (-j.priority) = s.rank
         and (j.run_at, j.id) >= (s.lo, s.lo_id) and j.run_at <= now()
         and j.id <> all($12::uuid[])
         and (j.tenant_id is null or (not s.bare and j.tenant_id <> all($13::text[])))"""

_RUNS: Final = """\
not exists (select from {schema}.x_queues p
                        where p.queue = q.queue and p.paused_at is not null
                          and (p.resume_at is null or p.resume_at > now()))"""

_UPDATE: Final = f"""\
update {{schema}}.x_jobs j
   set state = 'running', attempt = j.attempt + 1, claims = j.claims + 1,
       lease_no = nextval('{{schema_literal}}.x_lease_no'::regclass), lease_until = now() + $15::interval,
       worker_id = $1::text, started_at = now(), updated_at = now(),
       running_step = null, abandoned = null, progress = null,
       key_held = j.key_held and j.unique_mode = 'live'
 where j.id = any(array(select c.id from c))
returning j.id, j.run_id, j.name, j.queue, j.tenant_id, j.lane, j.priority, j.attempt, j.max_attempts, j.claims,
          j.claims > 1 or (select true from {{schema}}.x_job_steps s where s.run_id = j.run_id limit 1) is not null,
          j.lease_no, j.input::text as input, j.unique_mode,
          {readable("j.run_at")}, {readable("j.created_at")}, j.started_at, j.enqueued_by,
          j.traceparent, j.code_version"""

_ANSWER: Final = """\
select u.*, case when u.id is null then clock_timestamp() - now() end as spent from (select) one left join u on true"""

# The subqueries are lazy: inner rows are locked only as far as the outer limits ask. Without any row to claim it
# answers with one that says how long the search took.
CLAIM: Final = f"""\
with c as materialized (
  select p.id from unnest($2::text[], $3::int[]) q(queue, slots) cross join lateral (
    select r.id
      from unnest($4::text[], $5::text[], $6::int[], $7::timestamptz[], $8::uuid[], $9::int[], $10::boolean[])
           s(queue, lane, rank, lo, lo_id, most, bare)
     cross join lateral (
      {_DUE} and j.name = any($11::text[])
       order by j.run_at, j.id limit s.most for no key update skip locked) r
     where s.queue = q.queue and {_RUNS}
     limit q.slots) p
  limit $14::int),
u as (
{_UPDATE})
{_ANSWER}"""

# $16 the capped name of each stream or null, $17 and $18 capped names and their caps. Free slots are locked before
# rows, which are no more than those, so that no cap is exceeded whoever else claims. Where a cap was lowered, claims
# in slots above it count as well: as many of the topmost free slots stay empty.
CLAIM_CAPPED: Final = f"""\
with f as materialized (
  select l.name, x.slot, row_number() over (partition by l.name order by x.slot) as n
    from unnest($17::text[], $18::int[]) l(name, size)
   cross join lateral (
    select count(*) as n from {{schema}}.x_job_slots s
     where s.lane = 'n:' || l.name and s.slot >= l.size and s.job_id is not null) above
   cross join lateral (
    select case when above.n = 0 then l.size else coalesce((
      select s.slot from {{schema}}.x_job_slots s
       where s.lane = 'n:' || l.name and s.slot < l.size and s.job_id is null
       order by s.slot desc offset greatest(above.n - 1, 0) limit 1), 0) end as slot) top
   cross join lateral (
    select s.slot from {{schema}}.x_job_slots s
     where s.lane = 'n:' || l.name and s.slot < top.slot and s.job_id is null
     order by s.slot limit $14::int for update skip locked) x),
c as materialized (
  select p.id, p.name, row_number() over (partition by p.name) as n
    from unnest($2::text[], $3::int[]) q(queue, slots) cross join lateral (
    select r.id, s.name
      from unnest($4::text[], $5::text[], $6::int[], $7::timestamptz[], $8::uuid[], $9::int[],
                  $10::boolean[], $16::text[]) s(queue, lane, rank, lo, lo_id, most, bare, name)
     cross join lateral (
      {_DUE} and (j.name = s.name or (s.name is null and j.name = any($11::text[])))
       order by j.run_at, j.id
       limit case when s.name is null then s.most
                  else least(s.most, (select count(*) from f where f.name = s.name)) end
         for no key update skip locked) r
     where s.queue = q.queue and {_RUNS}
     limit q.slots) p
  limit $14::int),
u as (
{_UPDATE}),
held as (
  update {{schema}}.x_job_slots s set job_id = t.id, lease_no = t.lease_no, expires_at = now() + $15::interval
    from (select f.name, f.slot, u.id, u.lease_no
            from c join f on f.name = c.name and f.n = c.n join u on u.id = c.id) t
   where s.lane = 'n:' || t.name and s.slot = t.slot)
{_ANSWER}"""

# Reads a stream's first rows alone: an early answer costs one look, a full search could cost a million rows.
NEXT_DUE: Final = f"""\
select now() as at, min({readable("coalesce(x.known, x.looked_to)")}) as due
  from unnest($1::text[], $2::text[], $3::int[], $4::timestamptz[], $5::uuid[]) s(queue, lane, rank, lo, lo_id)
 cross join lateral (
  select min(h.run_at) filter (where h.name = any($6::text[])) as known,
         case when count(*) = $7::int then max(h.run_at) end as looked_to
    from (select j.run_at, j.name from {{schema}}.x_jobs j
           where j.state in ('ready', 'suspended') and j.behind is null
             and j.queue = s.queue and j.lane = s.lane and (-j.priority) = s.rank
             and (j.run_at, j.id) >= (s.lo, s.lo_id)
           order by j.run_at, j.id limit $7::int) h) x
 where not exists (select from {{schema}}.x_queues p
                    where p.queue = s.queue and p.paused_at is not null
                      and (p.resume_at is null or p.resume_at > now()))"""


class Claimer:
    """Claims for one process. Idle, it costs one statement a second."""

    def __init__(self, links: Links, sql: Sql) -> None:
        self._links: Final = links
        self._sql: Final = sql
        self._book: Final = StreamBook(links, sql)
        self._slots: Final = SlotMaker(links, sql)
        self._turns: Final = Turns()
        self._turn: Final = asyncio.Lock()

    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        """See `Driver.claim`. Rows come sorted by priority, run_at, id."""
        queues = [queue for queue, slots in ask.queues.items() if slots > 0]
        if not queues or not ask.names or ask.limit <= 0:
            return []
        async with self._turn:
            if self._book.is_stale(queues):
                return await self._after_scan(ask, queues)
            self._book.default(queues)
            # Where lanes are shared out, what may have come up unseen is looked for by a scan.
            known = self._book.streams if _is_plain(ask) else self._book.likely if not ask.tenants else self._book.due
            jobs = await self._from(ask, known(queues))
            if not jobs:
                return await self._after_scan(ask, queues) if self._book.affordable() else []
            if len(jobs) < min(ask.limit, sum(ask.queues.values())):
                self._book.rescan_soon()
            return jobs

    async def next_due(
        self, queues: Sequence[str], names: Sequence[str], caps: Collection[str], tenants: Allowance | None
    ) -> timedelta | None:
        """See `Driver.next_due`."""
        async with self._turn:
            if self._book.is_stale(queues):
                await self._book.scan(queues)
            now = self._book.now()
            waits = [at - now for at in self._book.upcoming(queues, names, caps)]
            due = [stream for stream in self._book.due(queues) if _is_open(stream, tenants)]
            if due:
                plain = [name for name in names if name not in caps]
                columns = _columns(due)
                row = await self._links.fetchrow(self._sql(NEXT_DUE), *columns, plain, _NEXT_ROWS)
                if row is not None and row["due"] is not None:
                    waits.append(row["due"] - row["at"])
        return max(min(waits), timedelta(0)) if waits else None

    async def _after_scan(self, ask: ClaimAsk, queues: Sequence[str]) -> list[ClaimedJob]:
        while True:
            await self._book.scan(queues)
            jobs = await self._from(ask, self._book.due(queues))
            if jobs or self._book.is_whole(queues) or not self._book.affordable():
                return jobs

    async def _from(self, ask: ClaimAsk, streams: Sequence[Stream]) -> list[ClaimedJob]:
        division = Division(ask, streams, self._turns)
        jobs: list[ClaimedJob] = []
        while (found := division.next()) is not None:
            got = await self._round(ask, division, found)
            division.took(found, got)
            jobs += got
        jobs.sort(key=_claim_order)
        return jobs

    async def _round(self, ask: ClaimAsk, division: Division[Stream], found: Round[Stream]) -> list[ClaimedJob]:
        names = [capped_name(stream.lane) for stream in found.streams]
        caps = {name: ask.caps[name] for name in names if name is not None}
        await self._slots.make(caps)
        asked_at, sent = self._book.now(), time.monotonic()
        slots = {queue: division.free(queue) for queue in ask.queues}
        arguments = (
            ask.worker_id,
            list(slots),
            list(slots.values()),
            *_columns(found.streams),
            found.most,
            found.bare,
            [name for name in ask.names if name not in ask.caps],
            list(ask.skip),
            found.blocked,
            division.limit,
            ask.lease,
        )
        if caps:
            sizes = (names, list(caps), list(caps.values()))
            rows = await self._links.fetch(self._sql(CLAIM_CAPPED), *arguments, *sizes)
        else:
            rows = await self._links.fetch(self._sql(CLAIM), *arguments)
        jobs = [_claimed(row, sent) for row in rows if row["id"] is not None]
        if not jobs:
            self._book.spend(rows[0]["spent"])
        jobs.sort(key=_claim_order)
        self._remember(found, jobs, slots, division.limit, asked_at)
        return jobs

    def _remember(
        self,
        found: Round[Stream],
        jobs: Sequence[ClaimedJob],
        slots: dict[str, int],
        limit: int,
        asked_at: datetime,
    ) -> None:
        if found.blocked:
            # What was left out lies before what was found.
            return
        last = {(job.queue, job.lane, -job.priority): job for job in jobs}
        taken = Counter(job.queue for job in jobs)
        each = Counter((job.queue, job.lane, -job.priority) for job in jobs)
        for stream, most in zip(found.streams, found.most, strict=True):
            ends = len(jobs) < limit and taken[stream.queue] < slots[stream.queue] and each[stream.key] < most
            if ends and capped_name(stream.lane) is None:
                self._book.drained(stream, asked_at)
            elif stream.key in last:
                job = last[stream.key]
                self._book.took(stream, (job.run_at, job.id))


def _is_plain(ask: ClaimAsk) -> bool:
    return not ask.caps and ask.tenants is None and not ask.fair


def _is_open(stream: Stream, tenants: Allowance | None) -> bool:
    """False where a cap or an allowance may hold back what is due."""
    if capped_name(stream.lane) is not None:
        return False
    tenant = tenant_of(stream.lane)
    return tenants is None or tenant is None or tenants.of(tenant) > 0


def _claimed(row: Record, sent: float) -> ClaimedJob:
    """The statement returns the fields in their order, and one column more."""
    fields = list(row.values())
    fields[_UNIQUE] = _MODES[fields[_UNIQUE]]
    fields[-1] = sent
    return ClaimedJob(*fields)


def _claim_order(job: ClaimedJob) -> tuple[int, datetime, UUID]:
    return (-job.priority, job.run_at, job.id)


def _columns(streams: Sequence[Stream]) -> tuple[list[object], ...]:
    return (
        [stream.queue for stream in streams],
        [stream.lane for stream in streams],
        [stream.rank for stream in streams],
        [lower_bound(stream.from_at) for stream in streams],
        [stream.from_id for stream in streams],
    )
