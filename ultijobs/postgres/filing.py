"""Filing waiting rows anew whose lane is not the one that their declaration asks for by now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ultijobs._queue.lanes import slots_lane
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.stepping import IN_STREAM, STREAMS

__all__ = ["FILE", "file"]

_HEAD: Final = 500
_SEEN: Final = 50_000
_MOVED: Final = 500

# $1 queues, $2 capped names, $3 lanes of names without a cap. What is filed wrongly is not claimed, so that it comes to
# the head of its stream: no more than that is looked at.
FILE: Final = f"""\
with recursive {STREAMS},
heads as materialized (
  select x.id, x.name, s.lane from streams s cross join lateral (
    select j.id, j.name from {{schema}}.x_jobs j where {IN_STREAM} order by j.run_at, j.id limit {_HEAD}) x
   where s.queue = any($1::text[])
     and case when s.lane like 'n:%' then split_part(s.lane, ',', 1) = any($3::text[])
              else cardinality($2::text[]) > 0 end
   limit {_SEEN}),
wrong as materialized (
  select h.id, case when h.lane like 'n:%' then substr(h.lane, length(split_part(h.lane, ',', 1)) + 2)
                    else concat_ws(',', 'n:' || h.name, nullif(h.lane, '')) end as lane
    from heads h where h.lane like 'n:%' or h.name = any($2::text[]) limit {_MOVED}),
held as materialized (
  select w.id, w.lane from wrong w cross join lateral (
    select j.id from {{schema}}.x_jobs j
     where j.id = w.id and j.state in ('ready', 'suspended') for no key update skip locked) x),
moved as (
  update {{schema}}.x_jobs j set lane = (select h.lane from held h where h.id = j.id)
   where j.id = any(array(select h.id from held h)) returning j.id)
select count(*) from moved"""


async def file(links: Links, sql: Sql, queues: Sequence[str], names: Sequence[str], caps: Collection[str]) -> int:
    """See `Driver.file`."""
    free = [slots_lane(name) for name in names if name not in caps]
    moved: int = await links.fetchval(sql(FILE), list(queues), list(caps), free)
    return moved
