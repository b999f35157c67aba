"""Slots of capped names: rows that are made before they are first needed, taken by claims and let go by every end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from ultijobs._queue.claims import HeldSlot
from ultijobs._queue.lanes import slots_lane
from ultijobs._queue.views import SlotRow
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["HOLDERS", "LEFT_BEHIND", "LET_GO", "MAKE", "STRAYS", "SlotMaker", "holders", "let_go", "letting_go"]

_KNOWN_FOR: Final = 60.0
_HEAD: Final = 20
"""Rows of a lane that are looked at for one that is due, before somebody is woken."""

# $1 lanes, $2 their caps. The last slot is made with the others.
MAKE: Final = """\
insert into {schema}.x_job_slots (lane, slot)
select l.lane, g.slot from unnest($1::text[], $2::int[]) l(lane, size)
 cross join lateral generate_series(0, l.size - 1) g(slot)
 where not exists (select from {schema}.x_job_slots s where s.lane = l.lane and s.slot = l.size - 1)
on conflict do nothing"""

# Who was cancelled has left x_jobs; the slot names its claim until the body has ended.
LET_GO: Final = """\
with freed as (
  update {schema}.x_job_slots s set job_id = null, lease_no = null, expires_at = null
    from unnest($1::uuid[], $2::bigint[], $3::text[]) t(job_id, lease_no, queue)
   where s.job_id = t.job_id and s.lease_no = t.lease_no returning t.job_id, t.lease_no, t.queue),
told as materialized (
  select pg_catalog.pg_notify('{channel}', 'q:' || q.queue)::text as said from (select distinct f.queue from freed f) q)
select f.job_id, f.lease_no from freed f where (select count(*) from told) > 0"""

HOLDERS: Final = """\
select s.slot, s.job_id, j.worker_id, j.started_at, j.lease_until
  from {schema}.x_job_slots s cross join lateral (
    select h.worker_id, h.started_at, h.lease_until from {schema}.x_jobs h
     where h.id = s.job_id and h.lease_no = s.lease_no and h.lease_until is not null limit 1) j
 where s.lane = $1::text and s.job_id is not null order by s.slot limit $2::int"""


STRAYS: Final = """\
{schema}.x_job_slots s
   where s.job_id is not null and s.expires_at < now()
     and not exists (select from {schema}.x_jobs j
                      where j.id = s.job_id and j.lease_no = s.lease_no and j.lease_until is not null)"""
"""SQL: the slots `s` that no claim holds although they name a job, as when its row was removed by hand."""

LEFT_BEHIND: Final = f"""\
strays as materialized (
  select s.lane, s.slot from {STRAYS}
   limit $1::int for update skip locked),
emptied as (
  update {{schema}}.x_job_slots s set job_id = null, lease_no = null, expires_at = null
    from strays t where s.lane = t.lane and s.slot = t.slot)"""


def letting_go(ended: str) -> str:
    """SQL: `slots` frees those of the claims in `ended` (id, queue, lane); `next_one` tells whoever waits for them."""
    return f"""\
slots as (
  update {{schema}}.x_job_slots s set job_id = null, lease_no = null, expires_at = null
   where s.job_id = any(array(select e.id from {ended} e where e.lane like 'n:%'))),
next_one as (
  select pg_catalog.pg_notify('{{channel}}', 'q:' || w.queue)::text as said
    from (select distinct e.queue
            from (select e.queue, split_part(e.lane, ',', 1) as lane from {ended} e where e.lane like 'n:%') e
           where exists (
             select from (
               select j.run_at from {{schema}}.x_jobs j
                where j.state in ('ready', 'suspended') and j.behind is null
                  and j.queue = e.queue and j.lane >= e.lane and j.lane < e.lane || '-'
                order by j.lane, (-j.priority), j.run_at, j.id limit {_HEAD}) h
              where h.run_at <= now())) w)"""


class SlotMaker:
    """Makes the slots of the names that this process claims; what it has seen made it believes for a minute."""

    def __init__(self, links: Links, sql: Sql) -> None:
        self._links: Final = links
        self._sql: Final = sql
        self._made: Final[dict[str, tuple[int, float]]] = {}

    async def make(self, caps: Mapping[str, int]) -> None:
        """Raises `DriverUnavailable`."""
        now = time.monotonic()
        missing = {name: size for name, size in caps.items() if not self._is_made(name, size, now)}
        if missing:
            lanes = [slots_lane(name) for name in missing]
            await self._links.fetch(self._sql(MAKE), lanes, list(missing.values()))
            self._made.update((name, (size, now)) for name, size in missing.items())

    def forget(self) -> None:
        self._made.clear()

    def _is_made(self, name: str, size: int, now: float) -> bool:
        made, at = self._made.get(name, (0, now))
        return made >= size and now - at < _KNOWN_FOR


async def let_go(links: Links, sql: Sql, slots: Sequence[HeldSlot]) -> list[bool]:
    """See `Driver.let_go`."""
    rows = await links.fetch(
        sql(LET_GO),
        [slot.job_id for slot in slots],
        [slot.lease_no for slot in slots],
        [slot.queue for slot in slots],
    )
    freed = {(row["job_id"], row["lease_no"]) for row in rows}
    return [(slot.job_id, slot.lease_no) in freed for slot in slots]


async def holders(links: Links, sql: Sql, name: str, limit: int) -> list[SlotRow]:
    """See `InspectionStore.slots`."""
    return [SlotRow(**dict(row.items())) for row in await links.fetch(sql(HOLDERS), slots_lane(name), limit)]
