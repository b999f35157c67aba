"""One cheap look at what workers do besides claiming: the statements that do it run when there is something alone."""

from __future__ import annotations

from typing import Final

from ultijobs._queue.attention import Attention
from ultijobs.postgres.links import Links
from ultijobs.postgres.slots import STRAYS
from ultijobs.postgres.sql import Sql

__all__ = ["attention"]

LOOK: Final = f"""\
select exists (select from {{schema}}.x_jobs j
                where j.state = 'running' and (j.lease_until < now() or j.lease_until is null))
       or exists (select from {{schema}}.x_jobs d where d.state = 'delayed')
       or exists (select from {{schema}}.x_jobs w
                   where w.behind is not null
                     and not exists (select from {{schema}}.x_jobs a where a.id = w.behind
                                        and a.state in ('ready', 'running', 'suspended')))
       or exists (select from {STRAYS}) as lapsed,
       exists (select from {{schema}}.x_job_events e where not e.delivered) as events"""


async def attention(links: Links, sql: Sql) -> Attention:
    """See `Driver.attention`."""
    row = await links.fetchrow(sql(LOOK))
    assert row is not None, "a select without a table has one row"
    return Attention(lapsed=row["lapsed"], events=row["events"])
