"""What is told once in a fleet: seats of publishers, in x_scheduler_leader, and losses, in x_job_attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ultijobs._queue.telemetry import LostClaim, Seat
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["LEAVE_SEAT", "NOTE_LOST", "TAKE_SEAT", "PostgresTelemetry"]

# $1 seat, $2 holder, $3 lease
TAKE_SEAT: Final = """\
insert into {schema}.x_scheduler_leader as l (key, scope, holder, term, lease_until)
values ('metrics', $1::text, $2::text, 1, now() + $3::interval)
on conflict (key, scope) do update set holder = excluded.holder, lease_until = excluded.lease_until,
  term = case when l.lease_until > now() then l.term else l.term + 1 end
  where l.lease_until <= now() or l.holder = excluded.holder
returning true"""

LEAVE_SEAT: Final = """\
update {schema}.x_scheduler_leader set lease_until = now()
 where key = 'metrics' and scope = $1::text and holder = $2::text and lease_until > now()"""

# The key of an attempt decides who was first: this, the reaper, or what ended the claim otherwise.
NOTE_LOST: Final = """\
with held as materialized (
  select j.run_id, j.id, j.lease_no, j.attempt, j.max_attempts, j.worker_id, j.started_at,
         coalesce(j.abandoned, 'X_JOB_LEASE_LOST') as code
    from unnest($1::uuid[], $2::bigint[]) t(id, lease_no)
    join {schema}.x_jobs j on j.id = t.id and j.lease_no = t.lease_no and j.lease_until is not null
   order by j.id for no key update of j)
insert into {schema}.x_job_attempts
       (run_id, job_id, lease_no, attempt, worker_id, outcome, started_at, ended_at, error_code, error)
select h.run_id, h.id, h.lease_no, h.attempt, h.worker_id, 'lost', h.started_at, now(), h.code,
       h.code || ': ' || coalesce(h.worker_id, 'a worker') || ' lost its lease in attempt '
         || h.attempt || ' of ' || h.max_attempts
  from held h
on conflict do nothing
returning lease_no"""


class PostgresTelemetry:
    """See `TelemetryStore`."""

    def __init__(self, control: Links, sql: Sql) -> None:
        self._control: Final = control
        self._sql: Final = sql

    async def take_seat(self, seat: Seat, holder: str, *, lease: timedelta) -> bool:
        return bool(await self._control.fetchval(self._sql(TAKE_SEAT), seat, holder, lease))

    async def leave_seat(self, seat: Seat, holder: str) -> None:
        await self._control.fetch(self._sql(LEAVE_SEAT), seat, holder)

    async def note_lost(self, claims: Sequence[LostClaim]) -> list[bool]:
        ids, leases = [claim.id for claim in claims], [claim.lease_no for claim in claims]
        noted = {row["lease_no"] for row in await self._control.fetch(self._sql(NOTE_LOST), ids, leases)}
        return [lease_no in noted for lease_no in leases]
