"""The receiving end of a move: jobs are stored under their own ids with all that belongs to them, and read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.moving import MovedJob, MovedStep
from ultijobs._queue.records import ActResult
from ultijobs._queue.steps import AttemptRecord
from ultijobs.errors import DriverUnavailable, JobDuplicate
from ultijobs.postgres.links import Links
from ultijobs.postgres.moved_rows import (
    ATTEMPT_TYPES,
    JOB_TYPES,
    STEP_TYPES,
    attempt_columns,
    job_columns,
    job_of,
    step_columns,
    step_of,
    unnested,
)
from ultijobs.postgres.rows import ATTEMPT, attempt_record
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = [
    "ATTEMPTS",
    "COME_BACK",
    "ENDED_HERE",
    "KNOWN",
    "LEAP",
    "PRESENT",
    "RECEIVE",
    "RECEIVE_ATTEMPTS",
    "RECEIVE_STEPS",
    "STEPS",
    "TELL",
    "TWINS",
    "WHOLE",
    "receive",
    "whole",
]

_LIMIT: Final = 20.0
_TRIES: Final = 3
_LEAP: Final = 1_000_000
"""Lease numbers that may be given out beside the statement that moves the sequence on."""

WHOLE: Final = ", ".join(
    f"j.{name}::text as {name}" if kind == "json" else f"j.{name}" for name, kind in JOB_TYPES.items()
)
_STEP: Final = [f"{name}::text as {name}" if kind == "json" else name for name, kind in STEP_TYPES.items()]
_LIVE: Final = f"select {WHOLE} from {{schema}}.x_jobs j where j.id = any($1::uuid[])"
_PAST: Final = f"select {WHOLE} from {{schema}}.x_jobs_done j where j.id = any($1::uuid[])"
PRESENT: Final = f"{_LIVE} union all {_PAST}"

KNOWN: Final = """\
select j.id from {schema}.x_jobs j where j.id = any($1::uuid[])
union all select j.id from {schema}.x_jobs_done j where j.id = any($1::uuid[])"""

# What left this store before comes back: the row that says so goes, and the steps that it left behind.
COME_BACK: Final = """\
with back as (
  delete from {schema}.x_jobs_done d where d.id = any($1::uuid[]) and d.error_code = 'X_JOB_MOVED' returning d.run_id),
steps as (delete from {schema}.x_job_steps s where s.run_id = any(array(select back.run_id from back)))
delete from {schema}.x_job_attempts a where a.run_id = any(array(select back.run_id from back))"""

STEPS: Final = (
    f"select {', '.join(_STEP)} from {{schema}}.x_job_steps where run_id = any($1::uuid[]) order by position, name"
)
ATTEMPTS: Final = f"select {ATTEMPT} from {{schema}}.x_job_attempts where run_id = any($1::uuid[]) order by lease_no"

RECEIVE: Final = f"""\
insert into {{schema}}.x_jobs ({", ".join(JOB_TYPES)})
select {unnested(JOB_TYPES)} order by t.id on conflict do nothing returning id"""

# A job that ended here is in history: looked for after the insert, when none can end any more.
ENDED_HERE: Final = """\
delete from {schema}.x_jobs j using {schema}.x_jobs_done d
 where j.id = any($1::uuid[]) and d.id = j.id returning j.id"""

RECEIVE_STEPS: Final = f"""\
insert into {{schema}}.x_job_steps ({", ".join(STEP_TYPES)})
select {unnested(STEP_TYPES)} order by t.run_id, t.name on conflict do nothing"""

RECEIVE_ATTEMPTS: Final = f"""\
insert into {{schema}}.x_job_attempts ({", ".join(ATTEMPT_TYPES)})
select {unnested(ATTEMPT_TYPES)} order by t.run_id, t.lease_no on conflict do nothing"""

TWINS: Final = """\
select t.id, x.id as twin, x.state from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) t(id, name, tenant, key)
 cross join lateral (
  select j.id, j.state from {schema}.x_jobs j
   where j.name = t.name and coalesce(j.tenant_id, '') collate "C" = t.tenant and j.idempotency_key = t.key
     and j.key_held and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null limit 1) x"""

# $1 the highest number that came along. Far enough ahead that no number given out meanwhile is met again.
LEAP: Final = f"""\
select setval('{{schema_literal}}.x_lease_no'::regclass, $1::bigint + {_LEAP})
  from {{schema}}.x_lease_no s where s.last_value <= $1::bigint"""

TELL: Final = "select pg_catalog.pg_notify('{channel}', 'q:' || q)::text from unnest($1::text[]) q"


class _HolderGoneError(Exception):
    """A job was not stored because of a holder of its key that is not there any more: all of it is tried again."""


async def receive(links: Links, sql: Sql, jobs: Sequence[MovedJob]) -> list[ActResult]:
    """See `MoveStore.receive`."""
    if not jobs:
        return []
    for _ in range(_TRIES):
        try:
            async with links.transaction() as connection:
                answers = await _receive(connection, sql, jobs)
        except _HolderGoneError:
            continue
        return [answers[job.id] for job in jobs]
    raise DriverUnavailable("the holders of the jobs' keys changed again and again", fix="move them again")


async def _receive(connection: Connection[Record], sql: Sql, jobs: Sequence[MovedJob]) -> dict[UUID, ActResult]:
    ids = [job.id for job in jobs]
    await connection.execute(sql(COME_BACK), ids, timeout=_LIMIT)
    rows = await connection.fetch(sql(RECEIVE), *job_columns(jobs), timeout=_LIMIT)
    fresh = {row["id"] for row in rows}
    fresh -= {row["id"] for row in await connection.fetch(sql(ENDED_HERE), list(fresh), timeout=_LIMIT)}
    arrived = [job for job in jobs if job.id in fresh]
    known = fresh | {row["id"] for row in await connection.fetch(sql(KNOWN), ids, timeout=_LIMIT)}
    left = [job for job in jobs if job.id not in known]
    twins = await _twins(connection, sql, left)
    if len(twins) < len(left):
        raise _HolderGoneError
    if arrived:
        await connection.execute(sql(RECEIVE_STEPS), *step_columns(arrived), timeout=_LIMIT)
        await connection.execute(sql(RECEIVE_ATTEMPTS), *attempt_columns(arrived), timeout=_LIMIT)
        await connection.fetch(sql(LEAP), max(job.lease_no for job in arrived), timeout=_LIMIT)
        await connection.fetch(sql(TELL), sorted({job.queue for job in arrived}), timeout=_LIMIT)
    return {job: ActResult(job, done=True) for job in known} | twins


async def _twins(connection: Connection[Record], sql: Sql, jobs: Sequence[MovedJob]) -> dict[UUID, ActResult]:
    if not jobs:
        return {}
    rows = await connection.fetch(
        sql(TWINS),
        [job.id for job in jobs],
        [job.name for job in jobs],
        [job.tenant_id or "" for job in jobs],
        [job.idempotency_key or "" for job in jobs],
        timeout=_LIMIT,
    )
    return {row["id"]: _duplicate(row["id"], row["twin"]) for row in rows}


async def whole(connection: Connection[Record], sql: Sql, rows: Sequence[Record]) -> list[MovedJob]:
    """The rows with their steps and attempts."""
    runs = [row["run_id"] for row in rows]
    steps: dict[UUID, list[MovedStep]] = {run: [] for run in runs}
    attempts: dict[UUID, list[AttemptRecord]] = {run: [] for run in runs}
    if runs:
        for row in await connection.fetch(sql(STEPS), runs, timeout=_LIMIT):
            steps[row["run_id"]].append(step_of(row))
        for row in await connection.fetch(sql(ATTEMPTS), runs, timeout=_LIMIT):
            attempts[row["run_id"]].append(attempt_record(row))
    return [job_of(row, steps[row["run_id"]], attempts[row["run_id"]]) for row in rows]


def _duplicate(id: UUID, twin: UUID) -> ActResult:
    cause = f"job {twin} is live there and has the same key"
    return ActResult(id, done=False, code=JobDuplicate.code, cause=cause, meta={"existing_id": str(twin)})
