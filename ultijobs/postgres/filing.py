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
_MOVED: Final = 1_000

# $1 queues, $2 capped names, $3 lanes of names without a cap, $4 queues that tell tenants apart. What is filed wrongly
# is held back, or not claimed at all, so that it comes to the head of its stream: no more than that is looked at.
FILE: Final = f"""\
with recursive {STREAMS},
wanted as materialized (
  select s.*, case when s.lane like 'n:%' then split_part(s.lane, ',', 1) end as cap,
         case when s.lane like 'n:%' then nullif(substr(s.lane, length(split_part(s.lane, ',', 1)) + 2), '')
              else nullif(s.lane, '') end as tenant,
         s.queue = any($4::text[]) as apart
    from streams s where s.queue = any($1::text[])),
heads as materialized (
  select x.id, x.name, x.tenant_id, s.lane, s.cap, s.tenant, s.apart from wanted s cross join lateral (
    select j.id, j.name, j.tenant_id from {{schema}}.x_jobs j where {IN_STREAM} order by j.run_at, j.id limit {_HEAD}) x
   where case when s.cap is null then cardinality($2::text[]) > 0 else s.cap = any($3::text[]) end
      or (s.apart and s.tenant is null)
   limit {_SEEN}),
filed as materialized (
  select h.id, h.lane as before,
         concat_ws(',', case when h.cap is null then case when h.name = any($2::text[]) then 'n:' || h.name end
                             when h.cap <> all($3::text[]) then h.cap end,
                   case when h.tenant is not null then h.tenant when h.apart then 't:' || h.tenant_id end) as lane
    from heads h),
held as materialized (
  select w.id, w.lane from (select f.* from filed f where f.lane <> f.before limit {_MOVED}) w cross join lateral (
    select j.id from {{schema}}.x_jobs j
     where j.id = w.id and j.state in ('ready', 'suspended') for no key update skip locked) x),
moved as (
  update {{schema}}.x_jobs j set lane = (select h.lane from held h where h.id = j.id)
   where j.id = any(array(select h.id from held h)) returning j.id)
select count(*) from moved"""


async def file(
    links: Links,
    sql: Sql,
    queues: Sequence[str],
    names: Sequence[str],
    caps: Collection[str],
    apart: Collection[str],
) -> int:
    """See `Driver.file`."""
    free = [slots_lane(name) for name in names if name not in caps]
    moved: int = await links.fetchval(sql(FILE), list(queues), list(caps), free, list(apart))
    return moved
