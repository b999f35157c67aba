"""Retention: each batch is one short statement, takes no lock that another waits for, and waits for none itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.retention import Forgotten, Kept, Shelf, Windows
from ultijobs._queue.views import Count
from ultijobs.postgres import history
from ultijobs.postgres.links import Links
from ultijobs.postgres.outbox import FORGET
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["ACTIVITY", "EVENTS", "EXPIRED", "SCHEDULE", "STOPPED", "PostgresRetention"]

_NEVER_BEFORE: Final = UUID(int=0)

# $1..$7 the times of done, cancelled, failed, dead, outbox, schedule, activity; $8 at most so many of each. Days of
# history are dropped whole, so a day counts once all of it is over; a time of less than a day counts by the row.
EXPIRED: Final = f"""\
with cut as materialized (
  select {history.CUT.format(window="$1::interval")} as done, {history.CUT.format(window="$2::interval")} as cancelled)
select
  (select count(*) from (
     select 1 from {{schema}}.x_jobs_done d where d.state = 'done' and d.finished_at < (select c.done from cut c)
     union all
     select 1 from {{schema}}.x_jobs_done_default d
      where d.state = 'done' and d.finished_at >= (select c.done from cut c) and d.finished_at < now() - $1::interval
     limit $8::int) x) as done,
  (select count(*) from (
     select 1 from {{schema}}.x_jobs_done d
      where d.state = 'cancelled' and d.finished_at < (select c.cancelled from cut c)
     union all
     select 1 from {{schema}}.x_jobs_done_default d
      where d.state = 'cancelled' and d.finished_at >= (select c.cancelled from cut c)
        and d.finished_at < now() - $2::interval
     limit $8::int) x) as cancelled,
  (select count(*) from (select 1 from {{schema}}.x_jobs j
     where j.state in ('dead', 'failed') and j.state = 'failed' and j.finished_at < now() - $3::interval
     limit $8::int) x) as failed,
  (select count(*) from (select 1 from {{schema}}.x_jobs j
     where j.state in ('dead', 'failed') and j.state = 'dead' and j.finished_at < now() - $4::interval
     limit $8::int) x) as dead,
  (select count(*) from (select 1 from {{schema}}.x_job_events e where e.expires_at < now() limit $8::int) x) as events,
  (select count(*) from (select 1 from {{schema}}.x_outbox o where o.published_at < now() - $5::interval
     limit $8::int) x) as outbox,
  (select count(*) from (select 1 from {{schema}}.x_schedule_slots s
     where s.occurrence < now() - $6::interval
       and greatest(coalesce(s.through, s.occurrence), s.decided_at) < now() - $6::interval
     limit $8::int) x) as schedule,
  (select count(*) from (select 1 from {{schema}}.x_activity a where a.at < now() - $7::interval
     limit $8::int) x) as activity"""

# Goes on behind ($1, $2) in the order of the index, so that a long time of the one state does not make each batch
# look again at all rows of it.
STOPPED: Final = """\
with seen as materialized (
  select j.id, j.state, j.finished_at from {schema}.x_jobs j
   where j.state in ('dead', 'failed') and (j.finished_at, j.id) > ($1::timestamptz, $2::uuid)
     and j.finished_at < now() - least($3::interval, $4::interval)
   order by j.finished_at, j.id limit $5::int),
held as materialized (
  select j.id, j.run_id, j.state from {schema}.x_jobs j
   where j.id = any(array(
           select s.id from seen s
            where s.finished_at < now() - case s.state when 'dead' then $3::interval else $4::interval end))
     and j.finished_at < now() - case j.state when 'dead' then $3::interval when 'failed' then $4::interval end
     for update skip locked),
gone as (delete from {schema}.x_jobs j where j.id = any(array(select h.id from held h))),
steps as (delete from {schema}.x_job_steps s where s.run_id = any(array(select h.run_id from held h))),
attempts as (delete from {schema}.x_job_attempts a where a.run_id = any(array(select h.run_id from held h)))
select (select count(*) from held h where h.state = 'dead') as dead,
       (select count(*) from held h where h.state = 'failed') as failed,
       (select count(*) from seen) as seen, l.finished_at, l.id
  from (select 1) one left join
       (select s.finished_at, s.id from seen s order by s.finished_at desc, s.id desc limit 1) l on true"""

EVENTS: Final = """\
delete from {schema}.x_job_events where id = any(array(
  select e.id from {schema}.x_job_events e where e.expires_at < now()
   order by e.expires_at limit $1::int for update skip locked)) returning id"""

SCHEDULE: Final = """\
delete from {schema}.x_schedule_slots where ctid = any(array(
  select s.ctid from {schema}.x_schedule_slots s
   where s.occurrence < now() - $1::interval
     and greatest(coalesce(s.through, s.occurrence), s.decided_at) < now() - $1::interval
   order by s.occurrence limit $2::int for update skip locked)) returning task"""

ACTIVITY: Final = """\
delete from {schema}.x_activity where id = any(array(
  select a.id from {schema}.x_activity a where a.at < now() - $1::interval
   order by a.at limit $2::int for update skip locked)) returning id"""


class PostgresRetention:
    """See `RetentionStore`."""

    def __init__(self, links: Links, counts: Links, sql: Sql) -> None:
        self._links: Final = links
        self._counts: Final = counts
        self._sql: Final = sql

    async def expired(self, windows: Windows, *, cap: int = 10_000) -> Mapping[Kept, Count]:
        told = await self._counts.fetchrow(
            self._sql(EXPIRED),
            windows.done,
            windows.cancelled,
            windows.failed,
            windows.dead,
            windows.outbox,
            windows.schedule,
            windows.activity,
            cap + 1,
        )
        assert told is not None
        return {
            kind: Count(min(told[kind.value], cap), "capped" if told[kind.value] > cap else "exact") for kind in Kept
        }

    async def forget(self, shelf: Shelf, windows: Windows, *, after: str | None = None, limit: int = 500) -> Forgotten:
        match shelf:
            case Shelf.HISTORY:
                return await history.forget(self._links, self._sql, windows, after, limit)
            case Shelf.STOPPED:
                return await self._stopped(windows, after, limit)
            case Shelf.EVENTS:
                return _told(Kept.EVENTS, await self._links.fetch(self._sql(EVENTS), limit), limit)
            case Shelf.OUTBOX:
                return _told(Kept.OUTBOX, await self._links.fetch(self._sql(FORGET), windows.outbox, limit), limit)
            case Shelf.SCHEDULE:
                rows = await self._links.fetch(self._sql(SCHEDULE), windows.schedule, limit)
                return _told(Kept.SCHEDULE, rows, limit)
            case Shelf.ACTIVITY:
                rows = await self._links.fetch(self._sql(ACTIVITY), windows.activity, limit)
                return _told(Kept.ACTIVITY, rows, limit)

    async def _stopped(self, windows: Windows, after: str | None, limit: int) -> Forgotten:
        at, id = history.place_of(after)  # noqa: A001 - the word of the column
        told = await self._links.fetchrow(self._sql(STOPPED), at, id, windows.dead, windows.failed, limit)
        assert told is not None
        gone = Counter({Kept.DEAD: told["dead"], Kept.FAILED: told["failed"]})
        return Forgotten(dict(+gone), history.place(told) if told["seen"] >= limit else None)


def _told(kind: Kept, rows: list[Record], limit: int) -> Forgotten:
    return Forgotten({kind: len(rows)} if rows else {}, "more" if len(rows) >= limit else None)
