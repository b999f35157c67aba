"""Settling: each outcome in one statement for many, fenced row by row on the lease number.

The arrays are sorted by id and rows are locked in that order, so that no two statements wait for each other in a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.claims import Settlement, Verdict
from ultijobs._queue.lanes import capped_name
from ultijobs._queue.records import Outcome, UniqueMode
from ultijobs.postgres.fates import fates
from ultijobs.postgres.links import Links
from ultijobs.postgres.slots import letting_go
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["RELEASE", "settle"]

_ACK_CHUNK: Final = 2_000
_STOP_CHUNK: Final = 100
"""The new values are looked up row by row in what was sent: a square, kept small."""

_HELD: Final = """\
cross join lateral (
    select j.run_id, j.started_at, j.worker_id, j.attempt from {schema}.x_jobs j
     where j.id = t.id and j.lease_no = t.lease_no and j.lease_until is not null for no key update) x"""

_MOVED: Final = """\
run_at, lease_no, lease_until, started_at, finished_at, updated_at, attempt, claims, key_held, state, worker_id,
  stop_reason, error_code, fingerprint, running_step, abandoned, behind, progress, cancel_reason, last_error, due_at,
  created_at, id, run_id, max_attempts, priority, name, queue, tenant_id, lane, unique_mode, idempotency_key,
  enqueued_by, traceparent, code_version, input"""

_DONE: Final = """\
run_at, lease_no, null, started_at, now(), now(), attempt, claims, key_held, 'done', worker_id,
  null, null, null, null, null, behind, progress, null, null, due_at,
  created_at, id, run_id, max_attempts, priority, name, queue, tenant_id, lane, unique_mode, idempotency_key,
  enqueued_by, traceparent, code_version, input"""

# The twins of what ended become claimable, as new as now: a claim may have looked past their own time already.
RELEASE: Final = """\
freed as (
  update {schema}.x_jobs w set behind = null, run_at = greatest(w.run_at, now()), updated_at = now()
   where w.behind = any(array(select ended.id from ended)) returning w.queue, w.run_at),
told as (
  select pg_notify('{channel}', 'q:' || f.queue)::text as said
    from (select distinct freed.queue from freed where freed.run_at <= now()) f)"""

_ACK: Final = f"""\
with u as materialized (
  select t.id from unnest($1::uuid[], $2::bigint[]) t(id, lease_no) {_HELD}),
d as (
  delete from {{schema}}.x_jobs j where j.id = any(array(select u.id from u)) returning j.*),
ended as (
  insert into {{schema}}.x_jobs_done ({_MOVED})
  select {_DONE} from d returning id)"""

ACK: Final = f"{_ACK}\nselect ended.id from ended"

ACK_RELEASING: Final = f"""\
{_ACK},
{RELEASE},
{letting_go("d")}
select ended.id from ended
 where (select count(told.said) from told) >= 0 and (select count(next_one.said) from next_one) >= 0"""

STOP: Final = f"""\
with u as materialized (
  select t.*, x.run_id, x.started_at, x.worker_id, x.attempt
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::interval[], $6::timestamptz[],
                $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
         t(id, lease_no, outcome, state, delay, run_at, stop_reason, error_code, fingerprint, error, traceback)
   {_HELD}),
moved as (
  update {{schema}}.x_jobs j
     set (state, run_at, attempt, finished_at, stop_reason, error_code, fingerprint, last_error) = (
           select u.state,
                  case when u.state in ('dead', 'failed') then j.run_at
                       when u.outcome = 'suspended' and j.woken = j.lease_no then now()
                       else greatest(now(), coalesce(u.run_at, now() + u.delay)) end,
                  case when u.outcome in ('suspended', 'returned') then greatest(j.attempt - 1, 0) else j.attempt end,
                  case when u.state in ('dead', 'failed') then now() end, u.stop_reason,
                  coalesce(u.error_code, j.error_code), coalesce(u.fingerprint, j.fingerprint),
                  coalesce(u.error, j.last_error)
             from u where u.id = j.id),
         lease_until = null, worker_id = null, running_step = null, abandoned = null, updated_at = now()
   where j.id = any(array(select u.id from u))
  returning j.id, j.state, j.queue, j.lane, j.run_at),
noted as (
  insert into {{schema}}.x_job_attempts
         (run_id, job_id, lease_no, attempt, worker_id, outcome, started_at, ended_at, error_code, error, traceback)
  select u.run_id, u.id, u.lease_no, u.attempt, u.worker_id, u.outcome, u.started_at, now(), u.error_code, u.error,
         u.traceback
    from u where u.outcome <> 'suspended'
  on conflict do nothing),
ended as (select moved.id from moved where moved.state in ('dead', 'failed')),
{RELEASE},
{letting_go("moved")},
due as (
  select pg_notify('{{channel}}', 'q:' || f.queue)::text as said
    from (select distinct moved.queue from moved
           where moved.state in ('ready', 'suspended') and moved.run_at <= now()) f)
select moved.id from moved
 where (select count(told.said) from told) >= 0 and (select count(due.said) from due) >= 0
   and (select count(next_one.said) from next_one) >= 0"""

# A body that reports its own cancellation: the row is moved as a cancel of a waiting row would.
CANCELLED: Final = f"""\
with u as materialized (
  select t.*, x.run_id, x.started_at, x.worker_id, x.attempt
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[]) t(id, lease_no, error_code, error) {_HELD}),
d as (
  delete from {{schema}}.x_jobs j where j.id = any(array(select u.id from u)) returning j.*),
noted as (
  insert into {{schema}}.x_job_attempts
         (run_id, job_id, lease_no, attempt, worker_id, outcome, started_at, ended_at, error_code, error)
  select u.run_id, u.id, u.lease_no, u.attempt, u.worker_id, 'cancelled', u.started_at, now(), u.error_code, u.error
    from u
  on conflict do nothing),
ended as (
  insert into {{schema}}.x_jobs_done ({_MOVED})
  select run_at, lease_no, null, started_at, now(), now(), attempt, claims, key_held, 'cancelled', null,
         null, error_code, fingerprint, null, null, behind, progress, cancel_reason, last_error, due_at,
         created_at, id, run_id, max_attempts, priority, name, queue, tenant_id, lane, unique_mode, idempotency_key,
         enqueued_by, traceparent, code_version, input
    from d returning id),
{RELEASE},
{letting_go("d")}
select ended.id from ended
 where (select count(told.said) from told) >= 0 and (select count(next_one.said) from next_one) >= 0"""

_STATES: Final = {
    Outcome.RETRIED: "ready",
    Outcome.LOST: "ready",
    Outcome.RETURNED: "ready",
    Outcome.SUSPENDED: "suspended",
    Outcome.DEAD: "dead",
    Outcome.FAILED: "failed",
}


async def settle(links: Links, sql: Sql, settlements: Sequence[Settlement]) -> list[Verdict]:
    """See `Driver.settle`."""
    verdicts = [Verdict.LOST] * len(settlements)
    for turn in _turns(settlements):
        told = await _settle(links, sql, [settlements[at] for at in turn])
        for at, verdict in zip(turn, told, strict=True):
            verdicts[at] = verdict
    return verdicts


def _turns(settlements: Sequence[Settlement]) -> list[list[int]]:
    """Places in `settlements`, cut so that no turn has two claims of one job: what is matched is told by its id."""
    if len({given.id for given in settlements}) == len(settlements):
        return [list(range(len(settlements)))]
    turns: list[list[int]] = []
    nth: dict[UUID, int] = {}
    for at, given in enumerate(settlements):
        turn = nth[given.id] = nth.get(given.id, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(at)
    return turns


async def _settle(links: Links, sql: Sql, settlements: Sequence[Settlement]) -> list[Verdict]:
    ordered = sorted(settlements, key=attrgetter("id"))
    landed: set[UUID] = set()
    plain = [given for given in ordered if given.outcome is Outcome.OK and not _holds_others(given)]
    releasing = [given for given in ordered if given.outcome is Outcome.OK and _holds_others(given)]
    for statement, acked in ((ACK, plain), (ACK_RELEASING, releasing)):
        for chunk in _chunks(acked, _ACK_CHUNK):
            landed |= _ids(await links.fetch(sql(statement), *_claims(chunk)))
    for chunk in _chunks([given for given in ordered if given.outcome in _STATES], _STOP_CHUNK):
        landed |= _ids(await links.fetch(sql(STOP), *_claims(chunk), *_values(chunk)))
    for chunk in _chunks([given for given in ordered if given.outcome is Outcome.CANCELLED], _STOP_CHUNK):
        codes = [given.error_code for given in chunk]
        landed |= _ids(await links.fetch(sql(CANCELLED), *_claims(chunk), codes, [given.error for given in chunk]))
    if len(landed) == len(settlements):
        return [Verdict.SETTLED] * len(settlements)
    missed = [given for given in ordered if given.id not in landed]
    told = await fates(links, sql, [(given.id, given.lease_no) for given in missed])
    verdicts = dict.fromkeys(landed, Verdict.SETTLED)
    for given, fate in zip(missed, told, strict=True):
        if fate.cancelled:
            verdicts[given.id] = Verdict.CANCELLED
        else:
            verdicts[given.id] = Verdict.SETTLED if fate.landed(given.outcome) else Verdict.LOST
    return [verdicts[given.id] for given in settlements]


def _holds_others(given: Settlement) -> bool:
    """True when rows may wait behind it or a slot of the fleet may be taken by it."""
    return given.unique is not UniqueMode.LIVE or capped_name(given.lane) is not None


def _claims(chunk: Sequence[Settlement]) -> tuple[list[UUID], list[int]]:
    return [given.id for given in chunk], [given.lease_no for given in chunk]


def _values(chunk: Sequence[Settlement]) -> tuple[list[object], ...]:
    return (
        [given.outcome.value for given in chunk],
        [_STATES[given.outcome] for given in chunk],
        [given.delay for given in chunk],
        [given.run_at for given in chunk],
        [given.stop_reason for given in chunk],
        [given.error_code for given in chunk],
        [given.fingerprint for given in chunk],
        [given.error for given in chunk],
        [given.traceback for given in chunk],
    )


def _chunks(given: Sequence[Settlement], size: int) -> list[Sequence[Settlement]]:
    return [given[start : start + size] for start in range(0, len(given), size)]


def _ids(rows: Sequence[Record]) -> set[UUID]:
    return {row[0] for row in rows}
