"""Counts per queue and state in one statement: by streams, capped, and by estimate where history is long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from ultijobs._queue.records import JobState
from ultijobs._queue.views import Count, OutboxDepth, QueueRow, Stats
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import LIVE_WORKER
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.stepping import IN_STREAM, STREAMS

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["STATS", "STATS_OF_TENANT", "stats"]

_CAP: Final = 10_000
_STOPPED: Final = 10_000
_HISTORY: Final = 10_000

_MINE: Final = "($1::text is null or x.tenant_id = $1::text)"
_QUEUE: Final = "($2::text is null or x.queue = $2::text)"

# A row that waits is in one of two parts of its stream, due or later. What is suspended among them is counted by an
# index of its own; the oldest are at the head of their stream.
_WAITING: Final = f"""\
parked as materialized (
  select q.queue, p.due, p.later, p.due + p.later > {_CAP} as cut
    from (select distinct m.queue from mine m) q cross join lateral (
      select count(*) filter (where x.run_at <= now()) as due, count(*) filter (where x.run_at > now()) as later
        from (select j.run_at from {{schema}}.x_jobs j
               where j.state = 'suspended' and j.behind is null and j.queue = q.queue limit {_CAP + 1}) x) p),
due as (
  select s.queue, sum(d.seen) - max(p.due) as ready, max(p.due) as suspended, bool_or(d.seen >= s.most + p.due) as cut,
         min((select min(h.due_at) from (
           select j.due_at from {{schema}}.x_jobs j where {IN_STREAM} and j.run_at <= now() and j.state = 'ready'
            order by j.run_at, j.id limit 10) h)) as oldest
    from mine s join parked p on p.queue = s.queue cross join lateral (
      select count(*) as seen from (
        select from {{schema}}.x_jobs j where {IN_STREAM} and j.run_at <= now()
         order by j.run_at, j.id limit s.most + p.due) x) d
   group by s.queue),
later as (
  select s.queue, sum(d.seen) - max(p.later) as delayed, max(p.later) as suspended,
         bool_or(d.seen >= s.most + p.later) as cut
    from mine s join parked p on p.queue = s.queue cross join lateral (
      select count(*) as seen from (
        select from {{schema}}.x_jobs j where {IN_STREAM} and j.run_at > now()
         order by j.run_at, j.id limit s.most + p.later) x) d
   group by s.queue),
waiting as (
  select d.queue, greatest(d.ready, 0) as ready, greatest(l.delayed, 0) as delayed,
         d.suspended + l.suspended as suspended, d.oldest, d.cut as ready_cut, l.cut as delayed_cut,
         (select p.cut from parked p where p.queue = d.queue) as suspended_cut
    from due d join later l on l.queue = d.queue),"""

# A tenant is in no index: its rows are picked from those that the parts of each stream may show.
_WAITING_OF_TENANT: Final = f"""\
waiting as (
  select s.queue, sum(d.ready) as ready, sum(d.delayed) as delayed, sum(d.suspended) as suspended,
         min(d.oldest) as oldest, bool_or(d.due >= s.most) as ready_cut, bool_or(d.later >= s.most) as delayed_cut,
         bool_or(d.due >= s.most or d.later >= s.most) as suspended_cut
    from mine s cross join lateral (
      select count(*) filter (where x.run_at <= now()) as due, count(*) filter (where x.run_at > now()) as later,
             count(*) filter (where x.mine and x.state = 'ready' and x.run_at <= now()) as ready,
             count(*) filter (where x.mine and x.state = 'ready' and x.run_at > now()) as delayed,
             count(*) filter (where x.mine and x.state = 'suspended') as suspended,
             min(x.due_at) filter (where x.mine and x.state = 'ready' and x.run_at <= now()) as oldest
        from (
          (select j.state, j.run_at, j.due_at, j.tenant_id = $1::text as mine from {{schema}}.x_jobs j
            where {IN_STREAM} and j.run_at <= now() order by j.run_at, j.id limit s.most)
          union all
          (select j.state, j.run_at, j.due_at, j.tenant_id = $1::text from {{schema}}.x_jobs j
            where {IN_STREAM} and j.run_at > now() order by j.run_at, j.id limit s.most)) x) d
   group by s.queue),"""

# $1 tenant, $2 queue, both or either null
_STATS: Final = f"""\
with recursive {STREAMS},
mine as materialized (
  select s.*, greatest(100, least({_CAP + 1}, 100000 / count(*) over (partition by s.queue))) as most
    from streams s where $2::text is null or s.queue = $2::text),
{{waiting}}
behind as (
  select x.queue, count(*) filter (where x.state = 'ready' and x.run_at <= now()) as ready,
         count(*) filter (where x.state = 'ready' and x.run_at > now()) as delayed,
         count(*) filter (where x.state = 'suspended') as suspended,
         min(x.due_at) filter (where x.state = 'ready' and x.run_at <= now()) as oldest
    from (select j.queue, j.state, j.run_at, j.due_at, j.tenant_id from {{schema}}.x_jobs j
      where j.behind is not null limit {_CAP}) x
   where {_MINE} group by x.queue),
running as (
  select x.queue, count(*) as running from {{schema}}.x_jobs x where x.state = 'running' and {_MINE} group by x.queue),
stopped as (
  select x.queue, count(*) filter (where x.state = 'dead' and {_MINE}) as dead,
         count(*) filter (where x.state = 'failed' and {_MINE}) as failed, sum(count(*)) over () as seen
    from (select j.queue, j.state, j.tenant_id from {{schema}}.x_jobs j
           where j.state in ('dead', 'failed') order by j.finished_at desc, j.id desc limit {_STOPPED + 1}) x
   group by x.queue),
history as (
  select count(*) as seen, count(*) filter (where x.state = 'done' and {_MINE} and {_QUEUE}) as done,
         count(*) filter (where x.state = 'cancelled' and {_MINE} and {_QUEUE}) as cancelled
    from (select j.queue, j.state, j.tenant_id from {{schema}}.x_jobs_done j limit {_HISTORY + 1}) x),
workers as (
  select q.queue, count(*) as workers, sum(w.concurrency) as capacity
    from {{schema}}.x_workers w cross join lateral unnest(w.queues) q(queue) where {LIVE_WORKER} group by q.queue),
names as (
  select queue from mine union select queue from behind union select queue from running union select queue from stopped
  union select queue from workers
  union select queue from {{schema}}.x_queues where paused_at is not null and (resume_at is null or resume_at > now())
  union select queue from {{schema}}.x_catalog where queue is not null)
select now() as as_of, h.seen as history_seen, h.done, h.cancelled, (select max(seen) from stopped) as stopped_seen,
       case when h.seen > {_HISTORY} then (
         select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint from pg_catalog.pg_inherits i
           join pg_catalog.pg_class c on c.oid = i.inhrelid
          where i.inhparent = '{{schema}}.x_jobs_done'::regclass) end as history_estimate,
       case when h.seen > {_HISTORY} then (
         select count(*) from (select from {{schema}}.x_jobs_done where state = 'cancelled'
           limit {_CAP + 1}) x) end as cancelled_seen,
       n.queue, coalesce(d.ready, 0)::bigint + coalesce(b.ready, 0) as ready,
       coalesce(d.delayed, 0)::bigint + coalesce(b.delayed, 0) as delayed,
       coalesce(d.suspended, 0)::bigint + coalesce(b.suspended, 0) as suspended,
       coalesce(d.ready_cut, false) as ready_cut, coalesce(d.delayed_cut, false) as delayed_cut,
       coalesce(d.suspended_cut, false) as suspended_cut,
       coalesce(r.running, 0) as running, coalesce(s.dead, 0) as dead, coalesce(s.failed, 0) as failed,
       (extract(epoch from now() - nullif(greatest(coalesce(least(d.oldest, b.oldest), 'infinity'),
          '0001-01-02 00:00:00+00'), 'infinity')) * 1000)::bigint as oldest_ready_ms,
       coalesce(w.workers, 0) as workers, coalesce(w.capacity, 0)::bigint as capacity,
       p.paused_at, p.paused_by, p.pause_reason, p.resume_at{{outbox}}
  from history h
  left join names n on $2::text is null or n.queue = $2::text
  left join waiting d on d.queue = n.queue
  left join behind b on b.queue = n.queue
  left join running r on r.queue = n.queue
  left join stopped s on s.queue = n.queue
  left join workers w on w.queue = n.queue
  left join {{schema}}.x_queues p
    on p.queue = n.queue and p.paused_at is not null and (p.resume_at is null or p.resume_at > now())
 order by n.queue"""

_OUTBOX: Final = f"""\
,
       (select count(*) from (select from {{schema}}.x_outbox o where o.published_at is null and o.set_aside_at is null
                               limit {_CAP + 1}) s) as staged,
       (select count(*) from (select from {{schema}}.x_outbox o where o.set_aside_at is not null
                               limit {_CAP + 1}) a) as set_aside,
       (select o.staged_at from {{schema}}.x_outbox o where o.published_at is null and o.set_aside_at is null
         order by o.tx_id, o.position limit 1) as oldest_staged,
       (select min(o.set_aside_at) from {{schema}}.x_outbox o where o.set_aside_at is not null) as oldest_set_aside"""

STATS: Final = _STATS.replace("{waiting}", _WAITING).replace("{outbox}", _OUTBOX)
STATS_OF_TENANT: Final = _STATS.replace("{waiting}", _WAITING_OF_TENANT).replace("{outbox}", "")


async def stats(links: Links, sql: Sql, queue: str | None, tenant: str | None) -> Stats:
    """See `InspectionStore.stats`."""
    rows = await links.fetch(sql(STATS if tenant is None else STATS_OF_TENANT), tenant, queue)
    first = rows[0]
    stopped_cut = (first["stopped_seen"] or 0) > _STOPPED
    listed = [row for row in rows if row["queue"] is not None]
    if tenant is not None:
        listed = [
            row
            for row in listed
            if any(row[name] for name in ("ready", "delayed", "running", "suspended", "dead", "failed"))
        ]
    queues = [_queue_row(row, stopped_cut=stopped_cut) for row in listed]
    done, cancelled = _history(first, whole=queue is None and tenant is None)
    failed = sum(row["failed"] for row in listed)
    totals = {
        JobState.READY.value: _sum([q.ready for q in queues]),
        JobState.DELAYED.value: _sum([q.delayed for q in queues]),
        JobState.RUNNING.value: Count(sum(q.running for q in queues)),
        JobState.SUSPENDED.value: _sum([q.suspended for q in queues]),
        JobState.DONE.value: done,
        JobState.FAILED.value: _capped(failed, cut=stopped_cut),
        JobState.DEAD.value: _sum([q.dead for q in queues], cut=stopped_cut),
        JobState.CANCELLED.value: cancelled,
    }
    ages = [q.oldest_ready_ms for q in queues if q.oldest_ready_ms is not None]
    outbox = _outbox(first) if queue is None and tenant is None else None
    return Stats(queues, totals, max(ages, default=None), first["as_of"], outbox)


def _queue_row(row: Record, *, stopped_cut: bool) -> QueueRow:
    state: Literal["running", "paused", "unserved"] = "running" if row["workers"] else "unserved"
    return QueueRow(
        queue=row["queue"],
        state="paused" if row["paused_at"] is not None else state,
        ready=_capped(row["ready"], cut=row["ready_cut"]),
        delayed=_capped(row["delayed"], cut=row["delayed_cut"]),
        running=row["running"],
        suspended=_capped(row["suspended"], cut=row["suspended_cut"]),
        dead=_capped(row["dead"], cut=stopped_cut),
        oldest_ready_ms=row["oldest_ready_ms"],
        capacity=row["capacity"],
        workers=row["workers"],
        paused_at=row["paused_at"],
        paused_by=row["paused_by"],
        pause_reason=row["pause_reason"],
        resume_at=row["resume_at"],
    )


def _outbox(row: Record) -> OutboxDepth:
    staged, aside = row["staged"], row["set_aside"]
    return OutboxDepth(
        _capped(staged, cut=staged > _CAP),
        row["oldest_staged"],
        _capped(aside, cut=aside > _CAP),
        row["oldest_set_aside"],
    )


def _history(row: Record, *, whole: bool) -> tuple[Count, Count]:
    """Done and cancelled: exact while few, else by the planner's own statistics; of a part of them, what was seen."""
    if row["history_seen"] <= _HISTORY:
        return Count(row["done"]), Count(row["cancelled"])
    if not whole:
        return Count(row["done"], "capped"), Count(row["cancelled"], "capped")
    cancelled = _capped(row["cancelled_seen"], cut=row["cancelled_seen"] > _CAP)
    return Count(max(row["history_estimate"] - cancelled.value, row["done"]), "estimate"), cancelled


def _capped(value: int, *, cut: bool) -> Count:
    return Count(min(value, _CAP), "capped" if cut or value > _CAP else "exact")


def _sum(counts: Sequence[Count], *, cut: bool = False) -> Count:
    capped = cut or any(count.kind != "exact" for count in counts)
    return Count(sum(count.value for count in counts), "capped" if capped else "exact")
