"""Decodes rows into the values of the contract, column by column, and names the columns that a reading needs."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from ultijobs._queue.activity import ActivityRow
from ultijobs._queue.claims import Progress
from ultijobs._queue.steps import AttemptRecord, StepRecord
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import JobRow, LeaseRow, WaitingOn, WorkerRow

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = [
    "ACTIVITY",
    "ATTEMPT",
    "JOB",
    "LIVE_WORKER",
    "STEP",
    "STORED",
    "activity_row",
    "attempt_record",
    "catalog_entry",
    "in_dates",
    "in_time",
    "job_row",
    "lease_row",
    "read_progress",
    "step_record",
    "worker_row",
]

STORED: Final = """\
run_at, lease_no, lease_until, started_at, finished_at, updated_at, attempt, claims, key_held, state, worker_id,
  stop_reason, \
error_code, fingerprint, running_step, abandoned, behind, progress, cancel_reason, last_error, due_at, created_at, id,
  run_id, \
max_attempts, priority, name, queue, tenant_id, lane, unique_mode, idempotency_key, enqueued_by, traceparent,
  code_version, input"""
"""Every column of x_jobs and x_jobs_done for rows that move between them; `woken` speaks of a claim alone."""

LIVE_WORKER: Final = (
    "w.stopped_at is null and w.state = 'running' and w.heartbeat_at >= now() - w.lease_ms * interval '1 ms'"
)
"""A worker `w` that claims: it beats, it has not stopped, it does not drain."""

_ROOM: Final = "(w.free_slots > 0 and j.queue <> all(w.full_queues))"

# What keeps worker `w` from starting a job of the tenant; what it told may be over by now.
_LIMIT: Final = """\
case (w.limited ->> j.tenant_id)::bigint when 0 then 'tenant' else
  case when w.heartbeat_at + (w.limited ->> j.tenant_id)::bigint * interval '1 ms' > now() then 'rate' end end"""

# As many slots of the lane are held as the declaration allows; without one, as there are.
_NO_SLOT: Final = """\
case when j.lane like 'n:%' then (
  select count(*) filter (where s.job_id is not null) >= greatest(1, coalesce(
           (select (c.declaration ->> 'concurrency')::int from {schema}.x_catalog c
             where c.kind = 'job' and c.name = j.name), count(*)))
    from {schema}.x_job_slots s where s.lane = split_part(j.lane, ',', 1)) else false end"""

_WAITING: Final = f"""\
case when j.state not in ('ready', 'suspended') then null
     when j.behind is not null then 'behind'
     when j.run_at > now() then
       case when j.state = 'ready' then case when j.attempt > 0 then 'backoff' else 'delay' end
            when exists (select from {{schema}}.x_job_steps t where t.run_id = j.run_id and t.status = 'waiting')
              then 'event'
            else 'sleep' end
     when exists (select from {{schema}}.x_queues q where q.queue = j.queue and q.paused_at is not null
                    and (q.resume_at is null or q.resume_at > now())) then 'paused'
     else (select case when count(*) = 0 then 'no-worker'
                       when not bool_or({_ROOM}) or {_NO_SLOT} then 'slot'
                       when bool_and(not {_ROOM} or {_LIMIT} is not null) then max({_LIMIT}) filter (where {_ROOM}) end
             from {{schema}}.x_workers w
            where {LIVE_WORKER} and j.queue = any(w.queues) and j.name = any(w.names)) end"""


def in_dates(column: str) -> str:
    """SQL for a time that a datetime holds: one of before or after all dates is shown as their first or last."""
    return f"least(greatest({column}, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00')"


JOB: Final = f"""\
j.id, j.run_id, j.name, j.queue, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end
  as state,
j.attempt, j.max_attempts, j.priority, j.idempotency_key, j.tenant_id, {in_dates("j.run_at")} as run_at,
{in_dates("j.due_at")} as due_at, {in_dates("j.created_at")} as created_at, {in_dates("j.updated_at")} as updated_at,
j.started_at, j.finished_at, j.lease_no, j.lease_until, j.worker_id, j.last_error, j.error_code, j.fingerprint,
  j.stop_reason,
j.cancel_reason, j.traceparent, j.enqueued_by, j.code_version, j.running_step, j.progress::text as progress, j.behind,
  j.lane,
{_WAITING} as waiting_on"""
"""What `job_row` reads of a row `j`."""

STEP: Final = """\
run_id, name, kind, status, output::text as output, error, position, started_at, completed_at, wake_at, tries,
  lease_no, event,
match"""
ATTEMPT: Final = (
    "run_id, job_id, attempt, lease_no, worker_id, outcome, started_at, ended_at, error_code, error, traceback"
)
ACTIVITY: Final = """\
id, at, actor, source, action, target, reason, as_of, matched, done, refused, failed, finished_at, equivalent,
detail::text as detail"""

_CHANGED: Final = {"progress", "waiting_on"}
_COPIED: Final = tuple(f.name for f in fields(JobRow) if f.name not in _CHANGED)
_ACTIVITY_COPIED: Final = tuple(f.name for f in fields(ActivityRow) if f.name != "detail")


def job_row(row: Record) -> JobRow:
    waiting_on = row["waiting_on"]
    return JobRow(
        **{name: row[name] for name in _COPIED},
        progress=read_progress(row["progress"]),
        waiting_on=None if waiting_on is None else WaitingOn(waiting_on),
    )


def in_time(at: datetime) -> datetime:
    """An infinite time, which asyncpg reads as a naive end of all dates, as an aware one."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def lease_row(row: Record) -> LeaseRow:
    return LeaseRow(
        id=row["id"],
        run_id=row["run_id"],
        name=row["name"],
        queue=row["queue"],
        tenant_id=row["tenant_id"],
        worker_id=row["worker_id"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        lease_no=row["lease_no"],
        running_step=row["running_step"],
        started_at=row["started_at"],
        lease_until=row["lease_until"],
        expired=row["expired"],
        progress=read_progress(row["progress"]),
    )


def step_record(row: Record) -> StepRecord:
    return StepRecord(**dict(row.items()))


def attempt_record(row: Record) -> AttemptRecord:
    return AttemptRecord(**dict(row.items()))


def activity_row(row: Record) -> ActivityRow:
    return ActivityRow(**{name: row[name] for name in _ACTIVITY_COPIED}, detail=_object(row["detail"]))


def catalog_entry(row: Record) -> CatalogEntry:
    return CatalogEntry(
        kind=row["kind"],
        name=row["name"],
        queue=row["queue"],
        declaration=_object(row["declaration"]),
        code_version=row["code_version"],
        environment=row["environment"],
        last_seen=row["last_seen"],
    )


def worker_row(row: Record) -> WorkerRow:
    told: dict[str, Any] = dict(row.items())
    told |= {of: tuple(row[of]) for of in ("queues", "names", "full_queues")}
    told |= {of: _numbers(row[of]) for of in ("counters", "limited")}
    return WorkerRow(**told)


def _numbers(text: str) -> dict[str, int]:
    return {name: count for name, count in _object(text).items() if isinstance(count, int)}


def read_progress(text: str | None) -> Progress | None:
    """What a renewal wrote; None for what cannot be read as progress."""
    if text is None:
        return None
    given = _object(text)
    done, total, message = given.get("done"), given.get("total"), given.get("message")
    if not isinstance(done, int | float):
        return None
    return Progress(
        done, total if isinstance(total, int | float) else None, message if isinstance(message, str) else None
    )


def _object(text: str) -> dict[str, Any]:
    value: object = json.loads(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
