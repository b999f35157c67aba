"""x_scheduler_leader, x_scheduler_state, x_schedule_slots: who leads, what is decided, one row per slot for ever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ultijobs._queue.schedule import Arming, Dispatch, Dispatched, Lapse, Leader, Run, Slot, TaskState
from ultijobs.postgres.enqueue import Enqueuer
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = [
    "ARM",
    "DECIDE",
    "FAULT",
    "FENCE",
    "FORGET_LEADERS",
    "LEAD",
    "LEADER",
    "RESIGN",
    "RETIRE",
    "RUNS",
    "SLOT",
    "SLOTS",
    "STATES",
    "PostgresSchedule",
]

# Who stands by writes nothing; who leads writes when a third of the lease is over.
LEAD: Final = """\
with known as materialized (
  select holder, term, lease_until from {schema}.x_scheduler_leader where key = 'scheduler' and scope = $3::text),
taken as (
  insert into {schema}.x_scheduler_leader as l (key, scope, holder, term, lease_until)
  select 'scheduler', $3::text, $1::text, 1, now() + $2::interval
   where not exists (
     select from known where lease_until > now()
        and (holder <> $1::text or lease_until > now() + $2::interval * (2.0 / 3)))
  on conflict (key, scope) do update set holder = excluded.holder, lease_until = excluded.lease_until,
    term = case when l.lease_until > now() then l.term else l.term + 1 end
    where l.lease_until <= now() or l.holder = excluded.holder
  returning holder, term, lease_until)
select holder, term, lease_until, now() as now from taken
union all
select holder, term, lease_until, now() from known where not exists (select from taken)"""

RESIGN: Final = """\
update {schema}.x_scheduler_leader set lease_until = now()
 where key = 'scheduler' and holder = $1::text and lease_until > now()"""

LEADER: Final = """\
select holder, term, lease_until, now() as now from {schema}.x_scheduler_leader where key = 'scheduler'
 order by lease_until desc, scope limit 1"""

STATES: Final = """\
select s.task, s.cron, s.tz, s.watermark, s.armed_at, s.last_fired, s.last_error, s.retired_at is not null as retired,
       s.owner, l.holder, l.term, l.lease_until, now() as now
  from {schema}.x_scheduler_state s
  left join {schema}.x_scheduler_leader l on l.key = 'scheduler' and l.scope = s.owner
 order by s.task limit 10000"""

# Locked until the end of the transaction: whoever takes the lead over waits for it, and sees what it decided.
FENCE: Final = """\
select scope from {schema}.x_scheduler_leader
 where key = 'scheduler' and holder = $1::text and term = $2::bigint and lease_until > now()
   for share"""

ARM: Final = """\
insert into {schema}.x_scheduler_state as s (task, cron, tz, watermark, owner)
select t.task, t.cron, t.tz, now(), $4::text
  from unnest($1::text[], $2::text[], $3::text[]) t(task, cron, tz) order by t.task
on conflict (task) do update set cron = excluded.cron, tz = excluded.tz, owner = excluded.owner, retired_at = null,
  updated_at = now(),
  watermark = case when (s.cron, s.tz) = (excluded.cron, excluded.tz) then s.watermark else excluded.watermark end,
  armed_at = case when (s.cron, s.tz) = (excluded.cron, excluded.tz) then s.armed_at else now() end,
  last_error = case when (s.cron, s.tz) = (excluded.cron, excluded.tz) then s.last_error end
  where ((s.cron, s.tz, s.owner) is distinct from (excluded.cron, excluded.tz, excluded.owner)
         or s.retired_at is not null)
    and (s.owner = excluded.owner
         or not exists (select from {schema}.x_scheduler_leader l
                         where l.key = 'scheduler' and l.scope = s.owner and l.lease_until > now()))"""

RETIRE: Final = """\
update {schema}.x_scheduler_state s set retired_at = now(), updated_at = now()
  from {schema}.x_scheduler_leader me
 where s.task = any($3::text[]) and s.retired_at is null
   and me.key = 'scheduler' and me.holder = $1::text and me.term = $2::bigint and me.lease_until > now()
   and (s.owner = me.scope
        or not exists (select from {schema}.x_scheduler_leader l
                        where l.key = 'scheduler' and l.scope = s.owner and l.lease_until > now()))"""

SLOT: Final = """\
insert into {schema}.x_schedule_slots (task, occurrence, outcome, reason, through, slots, term)
values ($1::text, $2::timestamptz, $3::text, $4::text, $5::timestamptz, $6::bigint, $7::bigint)
on conflict do nothing
returning true"""

DECIDE: Final = """\
with filed as (
  update {schema}.x_schedule_slots set job_ids = $4::text[]::uuid[]
   where task = $1::text and occurrence = $2::timestamptz and cardinality($4::text[]) > 0)
update {schema}.x_scheduler_state
   set watermark = greatest(watermark, least($3::timestamptz, now())),
       last_fired = greatest(last_fired, $2::timestamptz), updated_at = now(), last_error = null
 where task = $1::text"""

FAULT: Final = """\
update {schema}.x_scheduler_state set last_error = $4::text, updated_at = now()
 where task = $3::text
   and exists (select from {schema}.x_scheduler_leader
                where key = 'scheduler' and holder = $1::text and term = $2::bigint and lease_until > now())"""

SLOTS: Final = """\
select task, occurrence, outcome, reason, through, slots, job_ids, term, decided_at
  from {schema}.x_schedule_slots
 where $1::text is null or task = $1::text
 order by occurrence desc, task desc limit $2::int"""


# $1 tasks, $2 slots of each. A job cannot have ended before its slot was decided: older days of history are left out.
RUNS: Final = """\
select s.task, s.occurrence, s.outcome, cardinality(s.job_ids) as jobs, j.states, j.began, j.ended, j.error_code
  from unnest($1::text[]) t(task)
 cross join lateral (
  select r.task, r.occurrence, r.outcome, r.job_ids, r.decided_at from {schema}.x_schedule_slots r
   where r.task = t.task order by r.occurrence desc limit $2::int) s
 cross join lateral (
  select array_agg(distinct x.state) as states, min(x.started_at) as began, max(x.finished_at) as ended,
         max(x.error_code) filter (where x.state in ('dead', 'failed')) as error_code
    from unnest(s.job_ids[1:20]) i(id) cross join lateral (
      select l.state, l.started_at, l.finished_at, l.error_code from {schema}.x_jobs l where l.id = i.id
      union all
      select d.state, d.started_at, d.finished_at, d.error_code from {schema}.x_jobs_done d
       where d.id = i.id and d.finished_at >= s.decided_at
      limit 1) x) j
 order by s.task, s.occurrence desc"""

FORGET_LEADERS: Final = """\
delete from {schema}.x_scheduler_leader l
 where l.key = 'scheduler' and l.lease_until < now() - interval '7 days'
   and not exists (select from {schema}.x_scheduler_state s where s.owner = l.scope)"""


class PostgresSchedule:
    """See `ScheduleStore`."""

    def __init__(self, control: Links, reads: Links, transactions: Links, sql: Sql, enqueuer: Enqueuer) -> None:
        self._control: Final = control
        self._reads: Final = reads
        self._transactions: Final = transactions
        self._sql: Final = sql
        self._enqueuer: Final = enqueuer

    async def lead(self, holder: str, *, lease: timedelta, scope: str = "") -> Leader:
        while True:
            row = await self._control.fetchrow(self._sql(LEAD), holder, lease, scope)
            # No row: another took the empty place between our look and our insert.
            if row is not None:
                return _leader(row)

    async def resign(self, holder: str) -> None:
        await self._control.fetch(self._sql(RESIGN), holder)

    async def leader(self) -> Leader | None:
        row = await self._reads.fetchrow(self._sql(LEADER))
        return None if row is None else _leader(row)

    async def states(self) -> list[TaskState]:
        return [_state(row) for row in await self._reads.fetch(self._sql(STATES))]

    async def arm(self, holder: str, term: int, tasks: Sequence[Arming]) -> None:
        async with self._transactions.transaction() as connection:
            scope = await connection.fetchval(self._sql(FENCE), holder, term)
            if scope is not None:
                await connection.execute(
                    self._sql(ARM),
                    [task.task for task in tasks],
                    [task.cron for task in tasks],
                    [task.tz for task in tasks],
                    scope,
                )

    async def retire(self, holder: str, term: int, tasks: Sequence[str]) -> None:
        await self._control.fetch(self._sql(RETIRE), holder, term, list(tasks))

    async def dispatch(self, holder: str, term: int, dispatch: Dispatch) -> Dispatched | None:
        async with self._transactions.transaction() as connection:
            if await connection.fetchval(self._sql(FENCE), holder, term) is None:
                return None
            fresh = await connection.fetchval(
                self._sql(SLOT), dispatch.task, dispatch.occurrence, dispatch.outcome.value, None, None, 1, term
            )
            jobs = await self._enqueuer.enqueue(dispatch.jobs, connection, again=False) if fresh else []
            if fresh and dispatch.lapse is not None:
                await self._lapse(connection, term, dispatch.task, dispatch.lapse)
            await connection.execute(
                self._sql(DECIDE),
                dispatch.task,
                dispatch.occurrence,
                dispatch.watermark,
                [str(job.id) for job in jobs],
            )
            return Dispatched(tuple(jobs), fresh=bool(fresh))

    async def forget_leaders(self) -> None:
        """Removes leaders of long ago whose tasks have other owners by now."""
        await self._control.fetch(self._sql(FORGET_LEADERS))

    async def fault(self, holder: str, term: int, task: str, error: str) -> None:
        await self._control.fetch(self._sql(FAULT), holder, term, task, error)

    async def slots(self, task: str | None = None, *, limit: int = 100) -> list[Slot]:
        rows = await self._reads.fetch(self._sql(SLOTS), task, limit)
        return [_slot(row) for row in rows]

    async def runs(self, tasks: Sequence[str], *, each: int = 15) -> list[Run]:
        rows = await self._reads.fetch(self._sql(RUNS), list(tasks), each)
        return [_run(row) for row in rows]

    async def _lapse(self, connection: Connection[Record], term: int, task: str, lapse: Lapse) -> None:
        await connection.fetch(
            self._sql(SLOT), task, lapse.first, lapse.outcome.value, lapse.reason, lapse.last, lapse.slots, term
        )


def _leader(row: Record) -> Leader:
    return Leader(row["holder"], row["term"], row["lease_until"], row["now"])


def _state(row: Record) -> TaskState:
    return TaskState(
        task=row["task"],
        cron=row["cron"],
        tz=row["tz"],
        watermark=row["watermark"],
        armed_at=row["armed_at"],
        last_fired=row["last_fired"],
        last_error=row["last_error"],
        retired=row["retired"],
        owner=row["owner"],
        leader=None if row["holder"] is None else _leader(row),
    )


def _slot(row: Record) -> Slot:
    return Slot(
        task=row["task"],
        occurrence=row["occurrence"],
        outcome=row["outcome"],
        reason=row["reason"],
        through=row["through"],
        slots=row["slots"],
        job_ids=tuple(row["job_ids"]),
        term=row["term"],
        decided_at=row["decided_at"],
    )


def _run(row: Record) -> Run:
    return Run(
        task=row["task"],
        occurrence=row["occurrence"],
        outcome=row["outcome"],
        jobs=row["jobs"],
        states=tuple(row["states"] or ()),
        began=row["began"],
        ended=row["ended"],
        error_code=row["error_code"],
    )
