"""Claiming: due rows of known streams, in one statement that locks no more rows than it takes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.records import ClaimAsk, ClaimedJob, UniqueMode
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.streams import Stream, StreamBook, lower_bound, readable

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["Claimer"]

_NEXT_ROWS: Final = 200
_UNIQUE: Final = 13
_MODES: Final = {mode.value: mode for mode in UniqueMode}

# The subqueries are lazy: inner rows are locked only as far as the outer limits ask. Without any row to claim it
# answers with one that says how long the search took.
CLAIM: Final = f"""\
with c as materialized (
  select p.id from unnest($2::text[], $3::int[]) q(queue, slots) cross join lateral (
    select r.id
      from unnest($4::text[], $5::text[], $6::int[], $7::timestamptz[], $8::uuid[]) s(queue, lane, rank, lo, lo_id)
     cross join lateral (
      select j.id from {{schema}}.x_jobs j
       where j.state in ('ready', 'suspended') and j.behind is null
         and j.queue = s.queue and j.lane = s.lane and (-j.priority) = s.rank
         and (j.run_at, j.id) >= (s.lo, s.lo_id) and j.run_at <= now()
         and j.name = any($9::text[]) and j.id <> all($10::uuid[])
       order by j.run_at, j.id limit q.slots for no key update skip locked) r
     where s.queue = q.queue
       and not exists (select from {{schema}}.x_queues p
                        where p.queue = q.queue and p.paused_at is not null
                          and (p.resume_at is null or p.resume_at > now()))
     limit q.slots) p
  limit $11::int),
u as (
update {{schema}}.x_jobs j
   set state = 'running', attempt = j.attempt + 1, claims = j.claims + 1,
       lease_no = nextval('{{schema_literal}}.x_lease_no'::regclass), lease_until = now() + $12::interval,
       worker_id = $1::text, started_at = now(), updated_at = now(),
       running_step = null, abandoned = null, progress = null,
       key_held = j.key_held and j.unique_mode = 'live'
 where j.id = any(array(select c.id from c))
returning j.id, j.run_id, j.name, j.queue, j.tenant_id, j.lane, j.priority, j.attempt, j.max_attempts, j.claims,
          j.claims > 1 or (select true from {{schema}}.x_job_steps s where s.run_id = j.run_id limit 1) is not null,
          j.lease_no, j.input::text as input, j.unique_mode,
          {readable("j.run_at")}, {readable("j.created_at")}, j.started_at, j.enqueued_by,
          j.traceparent, j.code_version)
select u.*, case when u.id is null then clock_timestamp() - now() end as spent from (select) one left join u on true"""

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
            jobs = await self._from(ask, queues, self._book.streams(queues))
            if not jobs:
                return await self._after_scan(ask, queues) if self._book.affordable() else []
            if len(jobs) < min(ask.limit, sum(ask.queues.values())):
                self._book.rescan_soon()
            return jobs

    async def next_due(self, queues: Sequence[str], names: Sequence[str]) -> timedelta | None:
        """See `Driver.next_due`."""
        async with self._turn:
            if self._book.is_stale(queues):
                await self._book.scan(queues)
            now = self._book.now()
            waits = [at - now for at in self._book.upcoming(queues)]
            due = self._book.due(queues)
            if due:
                row = await self._links.fetchrow(self._sql(NEXT_DUE), *_columns(due), list(names), _NEXT_ROWS)
                if row is not None and row["due"] is not None:
                    waits.append(row["due"] - row["at"])
        return max(min(waits), timedelta(0)) if waits else None

    async def _after_scan(self, ask: ClaimAsk, queues: Sequence[str]) -> list[ClaimedJob]:
        await self._book.scan(queues)
        due = self._book.due(queues)
        if not due:
            return []
        return await self._from(ask, queues, due)

    async def _from(self, ask: ClaimAsk, queues: Sequence[str], streams: Sequence[Stream]) -> list[ClaimedJob]:
        asked_at, sent = self._book.now(), time.monotonic()
        slots = {queue: min(ask.queues[queue], ask.limit) for queue in queues}
        rows = await self._links.fetch(
            self._sql(CLAIM),
            ask.worker_id,
            list(slots),
            list(slots.values()),
            *_columns(streams),
            list(ask.names),
            list(ask.skip),
            ask.limit,
            ask.lease,
        )
        jobs = [_claimed(row, sent) for row in rows if row["id"] is not None]
        if not jobs:
            self._book.spend(rows[0]["spent"])
        jobs.sort(key=_claim_order)
        self._remember(streams, jobs, slots, ask.limit, asked_at)
        return jobs

    def _remember(
        self,
        streams: Sequence[Stream],
        jobs: Sequence[ClaimedJob],
        slots: dict[str, int],
        limit: int,
        asked_at: datetime,
    ) -> None:
        last = {(job.queue, job.lane, -job.priority): job for job in jobs}
        taken = Counter(job.queue for job in jobs)
        for stream in streams:
            if len(jobs) < limit and taken[stream.queue] < slots[stream.queue]:
                self._book.drained(stream, asked_at)
            elif stream.key in last:
                job = last[stream.key]
                self._book.took(stream, (job.run_at, job.id))


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
