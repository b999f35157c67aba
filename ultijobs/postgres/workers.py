"""x_workers: each worker process writes its row, is told what an operator asked of it, and is read by inspection."""

from __future__ import annotations

import json
from typing import Final

from ultijobs._queue.telling import WorkerBeat, WorkerOrder
from ultijobs._queue.views import WorkerRow
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import worker_row
from ultijobs.postgres.sql import Sql

__all__ = ["BEAT", "FORGET", "ORDER", "WORKERS", "beat", "forget", "order_worker", "workers"]

_SHOWN: Final = 1_000

BEAT: Final = """\
insert into {schema}.x_workers as w (
  instance, heartbeat_at, claimed_at, settled_at, stopped_at, state, wedged, listening, free_slots, running,
    loop_lag_ms, rss_bytes,
  lease_ms, counters, worker_id, host, pid, version, code_version, environment, queues, names, concurrency,
  full_queues, limited)
values ($1::uuid, now(), now() - $2::bigint * interval '1 ms', now() - $3::bigint * interval '1 ms',
  case when $4::text = 'stopped' then now() end, $4::text, $5::boolean, $6::boolean, $7::int, $8::int, $9::int,
    $10::bigint, $11::int,
  $12::text::json, $13::text, $14::text, $15::int, $16::text, $17::text, $18::text, $19::text[], $20::text[], $21::int,
  $22::text[], $23::text::json)
on conflict (instance) do update set
  heartbeat_at = now(), claimed_at = coalesce(excluded.claimed_at, w.claimed_at),
  settled_at = coalesce(excluded.settled_at, w.settled_at), stopped_at = excluded.stopped_at, state = excluded.state,
  wedged = excluded.wedged, listening = excluded.listening, free_slots = excluded.free_slots,
    running = excluded.running,
  loop_lag_ms = excluded.loop_lag_ms, rss_bytes = excluded.rss_bytes, lease_ms = excluded.lease_ms,
    counters = excluded.counters,
  queues = excluded.queues, names = excluded.names, concurrency = excluded.concurrency,
    code_version = excluded.code_version,
  full_queues = excluded.full_queues, limited = excluded.limited
returning w.control"""


async def beat(links: Links, sql: Sql, given: WorkerBeat) -> WorkerOrder:
    """See `Driver.beat`."""
    control = await links.fetchval(
        sql(BEAT),
        given.instance,
        given.claimed_ago_ms,
        given.settled_ago_ms,
        given.state,
        given.wedged,
        given.listening,
        given.free_slots,
        given.running,
        given.loop_lag_ms,
        given.rss_bytes,
        given.lease_ms,
        json.dumps(dict(given.counters)),
        given.worker_id,
        given.host,
        given.pid,
        given.version,
        given.code_version,
        given.environment,
        list(given.queues),
        list(given.names),
        given.concurrency,
        list(given.full_queues),
        json.dumps(dict(given.limited)),
    )
    return WorkerOrder(control)


ORDER: Final = """\
with told as (
  update {schema}.x_workers w set control = $2::text
   where w.worker_id = $1::text and w.stopped_at is null and w.heartbeat_at >= now() - w.lease_ms * interval '1 ms'
  returning w.instance)
select count(*), case when count(*) > 0 then pg_catalog.pg_notify('{channel}', 'w:' || $1::text)::text end from told"""


async def order_worker(links: Links, sql: Sql, worker_id: str, order: WorkerOrder) -> int:
    """See `Driver.order_worker`."""
    told: int = await links.fetchval(sql(ORDER), worker_id, order.value)
    return told


WORKERS: Final = f"""\
select w.worker_id, w.instance, w.host, w.pid, w.version, w.code_version, w.environment,
       case when w.stopped_at is not null then 'drained'
            when w.heartbeat_at < now() - w.lease_ms * interval '1 ms' then 'gone'
            when w.state in ('draining', 'drained') then w.state
            when w.wedged then 'wedged'
            when w.running > 0 then 'healthy' else 'idle' end as state,
       w.queues, w.names, w.concurrency, w.running, w.free_slots, w.started_at, w.heartbeat_at, w.claimed_at,
         w.settled_at, w.stopped_at,
       w.loop_lag_ms, w.rss_bytes, w.listening, w.counters::text as counters, w.full_queues,
       w.limited::text as limited, w.lease_ms
  from {{schema}}.x_workers w order by w.heartbeat_at desc limit {_SHOWN}"""


async def workers(links: Links, sql: Sql) -> list[WorkerRow]:
    """See `InspectionStore.workers`."""
    rows = [worker_row(row) for row in await links.fetch(sql(WORKERS))]
    return sorted(rows, key=lambda row: (row.worker_id, row.instance))


FORGET: Final = "delete from {schema}.x_workers where heartbeat_at < now() - interval '1 day'"


async def forget(links: Links, sql: Sql) -> None:
    """Drops the rows of workers that have been silent for a day."""
    await links.fetch(sql(FORGET))
