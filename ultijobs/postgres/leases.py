"""Leases: renewing those in flight, and ending those that lapsed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Final
from uuid import UUID

from ultijobs._queue.claims import Beat, BeatAnswer, CrashPolicy, Progress, Reaped
from ultijobs._queue.lanes import capped_name
from ultijobs._queue.records import JobState
from ultijobs._queue.telling import WorkerBeat, WorkerOrder
from ultijobs.postgres import workers
from ultijobs.postgres.fates import fates
from ultijobs.postgres.links import Links
from ultijobs.postgres.place import Place
from ultijobs.postgres.settlements import RELEASE
from ultijobs.postgres.slots import LEFT_BEHIND, letting_go
from ultijobs.postgres.sql import Sql

__all__ = ["PostgresLeaseLink", "reap"]

_RENEW_LIMIT: Final = 3.0
_DETAIL_CHUNK: Final = 100

_HELD: Final = """\
cross join lateral (
    select j.id from {schema}.x_jobs j
     where j.id = t.id and j.lease_no = t.lease_no and j.lease_until is not null for no key update) x"""

# One pass takes all locks in the order of the ids; what has changed besides is written with the renewal itself.
RENEW: Final = f"""\
with u as materialized (
  select t.id, t.tells, t.step, t.progress, t.abandoned, t.capped
    from unnest($1::uuid[], $2::bigint[], $4::boolean[], $5::text[], $6::text[], $7::text[], $8::boolean[])
         t(id, lease_no, tells, step, progress, abandoned, capped) {_HELD}),
slots as (
  update {{schema}}.x_job_slots s set expires_at = now() + $3::interval
   where s.job_id = any(array(select u.id from u where u.capped))),
quiet as (
  update {{schema}}.x_jobs j set lease_until = now() + $3::interval
   where j.id = any(array(select u.id from u where not u.tells)) returning j.id, j.lease_no),
telling as (
  update {{schema}}.x_jobs j
     set lease_until = now() + $3::interval,
         (running_step, progress, abandoned) = (
           select u.step, coalesce(u.progress::json, j.progress), coalesce(u.abandoned, j.abandoned)
             from u where u.id = j.id)
   where j.id = any(array(select u.id from u where u.tells)) returning j.id, j.lease_no)
select quiet.id, quiet.lease_no from quiet union all select telling.id, telling.lease_no from telling"""

# The backoff counts from the lapse, whenever it is noticed. A running row without a lease was written by hand: nobody
# runs it.
# Reads all running rows, which are as many as there are slots in the fleet, and all twins: those whose predecessor
# ended in the moment they were inserted, or was deleted by hand, are let go.
REAP: Final = f"""\
with c as materialized (
  select j.id, j.run_id, j.name, j.queue, j.lease_no, j.lease_until, j.attempt, j.max_attempts, j.worker_id,
         j.started_at,
         coalesce(j.abandoned, 'X_JOB_LEASE_LOST') as code,
         coalesce(j.abandoned, 'X_JOB_LEASE_LOST') || ': the lease of ' || coalesce(j.worker_id, 'a worker')
           || ' lapsed in attempt ' || j.attempt || ' of ' || j.max_attempts as error,
         j.attempt >= j.max_attempts as stops, coalesce(p.dead_letter, true) as dead_letter,
         case when coalesce(p.backoff, 'exponential') = 'fixed' then 1
              when coalesce(p.backoff, 'exponential') = 'linear' then greatest(j.attempt, 1)
              else power(2, least(greatest(j.attempt, 1) - 1, 60)) end as factor,
         coalesce(p.delay, interval '1 s') as delay, coalesce(p.max_delay, interval '1 h') as max_delay
    from {{schema}}.x_jobs j
    left join unnest($2::text[], $3::text[], $4::interval[], $5::interval[], $6::boolean[])
         p(name, backoff, delay, max_delay, dead_letter) on p.name = j.name
   where j.state = 'running' and (j.lease_until < now() or j.lease_until is null)
   limit $1::int for no key update of j skip locked),
noted as (
  insert into {{schema}}.x_job_attempts
         (run_id, job_id, lease_no, attempt, worker_id, outcome, started_at, ended_at, error_code, error)
  select c.run_id, c.id, c.lease_no, c.attempt, c.worker_id, 'lost', c.started_at, now(), c.code, c.error from c
  on conflict do nothing returning run_id, lease_no),
moved as (
  update {{schema}}.x_jobs j
     set (state, stop_reason, finished_at, error_code, fingerprint, last_error, run_at) = (
           select case when not c.stops then 'ready' when c.dead_letter then 'dead' else 'failed' end,
                  case when c.stops then 'lease-exhausted' end,
                  case when c.stops then now() end,
                  case when c.stops then 'X_JOB_MAX_ATTEMPTS' else c.code end,
                  null,
                  case when c.stops
                       then 'X_JOB_MAX_ATTEMPTS: attempt ' || c.attempt || ' of ' || c.max_attempts || ' took down '
                         || (select string_agg(w.worker_id, ', ' order by w.first)
                          from (select a.worker_id, min(a.lease_no) as first
                                  from (select r.worker_id, r.lease_no from {{schema}}.x_job_attempts r
                                         where r.run_id = c.run_id and r.outcome = 'lost'
                                        union all select coalesce(c.worker_id, 'a worker'), c.lease_no) a
                                 where a.worker_id is not null group by a.worker_id) w)
                       else c.error end,
                  case when c.stops then j.run_at
                       else greatest(now(), c.lease_until + least(c.max_delay, c.delay * least(
                              c.factor,
                              extract(epoch from c.max_delay) / greatest(extract(epoch from c.delay), 0.000001)))) end
             from c where c.id = j.id),
         lease_until = null, worker_id = null, running_step = null, abandoned = null, updated_at = now()
   where j.id = any(array(select c.id from c))
  returning j.id, j.state, j.run_at, j.queue, j.lane),
ended as (select moved.id from moved where moved.state in ('dead', 'failed')),
{RELEASE},
{letting_go("moved")},
{LEFT_BEHIND},
orphans as materialized (
  select w.id from {{schema}}.x_jobs w
   where w.behind is not null
     and not exists (select from {{schema}}.x_jobs a
                      where a.id = w.behind and a.state in ('ready', 'running', 'suspended'))
   limit $1::int for no key update skip locked),
unbound as (
  update {{schema}}.x_jobs w set behind = null, run_at = greatest(w.run_at, now()), updated_at = now()
   where w.id = any(array(select o.id from orphans o)) returning w.queue, w.run_at),
due as (
  select pg_notify('{{channel}}', 'q:' || f.queue)::text as said
    from (select moved.queue from moved where moved.state = 'ready' and moved.run_at <= now()
          union select unbound.queue from unbound where unbound.run_at <= now()) f)
select c.id, c.run_id, c.name, c.queue, c.lease_no, c.attempt, c.worker_id,
       case when moved.state = 'ready' and moved.run_at > now() then 'delayed' else moved.state end as state,
       exists (select from noted n where n.run_id = c.run_id and n.lease_no = c.lease_no) as noted
  from c join moved on moved.id = c.id
 where (select count(told.said) from told) >= 0 and (select count(due.said) from due) >= 0
   and (select count(next_one.said) from next_one) >= 0"""


# The table knows no such state: rows that SQL wrote so are ready, each when it is due, one for each key.
DELAYED: Final = """\
with found as materialized (
  select j.id, j.name, coalesce(j.tenant_id, '') as tenant, coalesce(j.idempotency_key, j.id::text) as key
    from {schema}.x_jobs j where j.state = 'delayed' order by j.id limit $1::int for no key update skip locked),
firsts as (select distinct on (f.name, f.tenant, f.key) f.id from found f order by f.name, f.tenant, f.key, f.id)
update {schema}.x_jobs j set state = 'ready', run_at = greatest(j.run_at, now()), updated_at = now()
 where j.id = any(array(select f.id from firsts f))
   and not exists (
     select from {schema}.x_jobs t
      where t.name = j.name and coalesce(t.tenant_id, '') collate "C" = coalesce(j.tenant_id, '') collate "C"
        and t.idempotency_key = j.idempotency_key and t.key_held and j.key_held
        and t.state in ('ready', 'running', 'suspended'))
returning j.id"""


async def reap(links: Links, sql: Sql, policies: Sequence[CrashPolicy], limit: int) -> list[Reaped]:
    """See `Driver.reap`."""
    rows = await links.fetch(
        sql(REAP),
        limit,
        [policy.name for policy in policies],
        [policy.backoff for policy in policies],
        [policy.delay for policy in policies],
        [policy.max_delay for policy in policies],
        [policy.dead_letter for policy in policies],
    )
    await links.fetch(sql(DELAYED), limit)
    return [
        Reaped(
            id=row["id"],
            run_id=row["run_id"],
            name=row["name"],
            queue=row["queue"],
            lease_no=row["lease_no"],
            attempt=row["attempt"],
            worker_id=row["worker_id"],
            state=JobState(row["state"]),
            noted=row["noted"],
        )
        for row in rows
    ]


class PostgresLeaseLink:
    """One connection, on the keeper's own loop. What a job tells is written when it has changed."""

    def __init__(self, place: Place, sql: Sql) -> None:
        self._place: Final = place
        self._sql: Final = sql
        self._links: Links | None = None
        self._told: dict[tuple[UUID, int], tuple[str | None, Progress | None, str | None]] = {}

    async def open(self) -> None:
        """Connects, and prepares what a renewal needs, so that each of them takes one round trip from the first on."""
        self._links = Links(self._place.apart(), limit=_RENEW_LIMIT, hot=True, role="lease")
        await self._renew([], timedelta(0), frozenset())

    async def renew(self, beats: Sequence[Beat], lease: timedelta) -> list[BeatAnswer]:
        """See `LeaseLink.renew`. Raises `DriverUnavailable`, after which nothing is known of any of them."""
        assert self._links is not None, "the link is opened first"
        ordered = sorted({(beat.id, beat.lease_no): beat for beat in beats}.values(), key=lambda beat: beat.id)
        changed = [beat for beat in ordered if self._told.get(_claim(beat)) != _said(beat)]
        held = await self._renew(ordered, lease, {_claim(beat) for beat in changed[:_DETAIL_CHUNK]})
        for start in range(_DETAIL_CHUNK, len(changed), _DETAIL_CHUNK):
            chunk = changed[start : start + _DETAIL_CHUNK]
            await self._renew(chunk, lease, {_claim(beat) for beat in chunk})
        missed = [claim for beat in ordered if (claim := _claim(beat)) not in held]
        answers = dict.fromkeys(held, BeatAnswer.HELD)
        for claim, fate in zip(missed, await fates(self._links, self._sql, missed), strict=True):
            answers[claim] = BeatAnswer.CANCELLED if fate.cancelled else BeatAnswer.LOST
        self._told = {claim: _said(beat) for beat in ordered if (claim := _claim(beat)) in held}
        return [answers[_claim(beat)] for beat in beats]

    async def _renew(
        self, beats: Sequence[Beat], lease: timedelta, tells: AbstractSet[tuple[UUID, int]]
    ) -> set[tuple[UUID, int]]:
        assert self._links is not None, "the link is opened first"
        rows = await self._links.fetch(
            self._sql(RENEW),
            [beat.id for beat in beats],
            [beat.lease_no for beat in beats],
            lease,
            [_claim(beat) in tells for beat in beats],
            [beat.step for beat in beats],
            [_progress_text(beat.progress) for beat in beats],
            [beat.error_code for beat in beats],
            [capped_name(beat.lane) is not None for beat in beats],
        )
        return {(row["id"], row["lease_no"]) for row in rows}

    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        """See `Driver.beat`."""
        assert self._links is not None, "the link is opened first"
        return await workers.beat(self._links, self._sql, beat)

    async def close(self) -> None:
        if self._links is not None:
            await self._links.close()
            self._links = None


def _said(beat: Beat) -> tuple[str | None, Progress | None, str | None]:
    return (beat.step, beat.progress, beat.error_code)


def _claim(beat: Beat) -> tuple[UUID, int]:
    return (beat.id, beat.lease_no)


def _progress_text(progress: Progress | None) -> str | None:
    if progress is None:
        return None
    return json.dumps({"done": progress.done, "total": progress.total, "message": progress.message})
