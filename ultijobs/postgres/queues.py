"""x_queues: who paused a queue, why, and when it goes on by itself. Claims look here in their own statement."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["PAUSE", "RESUME", "pause", "resume"]

PAUSE: Final = """\
insert into {schema}.x_queues as q (queue, paused_at, paused_by, pause_reason, resume_at)
values ($1::text, now(), $2::text, $3::text, now() + $4::interval)
on conflict (queue) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by,
  pause_reason = excluded.pause_reason, resume_at = excluded.resume_at
  where q.paused_at is null or q.resume_at <= now()
returning true"""


async def pause(links: Links, sql: Sql, queue: str, actor: str, reason: str | None, duration: timedelta | None) -> bool:
    """See `Driver.pause`."""
    return await links.fetchval(sql(PAUSE), queue, actor, reason, duration) is not None


RESUME: Final = """\
with gone as (delete from {schema}.x_queues where queue = $1::text returning paused_at, resume_at)
select coalesce((select paused_at is not null and (resume_at is null or resume_at > now()) from gone), false),
       pg_catalog.pg_notify('{channel}', 'q:' || $1::text)::text"""


async def resume(links: Links, sql: Sql, queue: str) -> bool:
    """See `Driver.resume`."""
    resumed: bool = await links.fetchval(sql(RESUME), queue)
    return resumed
