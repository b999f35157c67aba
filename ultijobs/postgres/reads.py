"""One job and what belongs to it: its row wherever it is, input, steps, attempts; and the claims in flight."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ultijobs._queue.steps import AttemptRecord, StepRecord
from ultijobs._queue.views import JobRow, LeaseRow
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import ATTEMPT, JOB, STEP, attempt_record, job_row, lease_row, step_record
from ultijobs.postgres.sql import Sql

__all__ = [
    "ATTEMPTS",
    "INPUT",
    "LEASES",
    "ONE",
    "RESOLVE",
    "STEPS",
    "attempts",
    "input_of",
    "job",
    "leases",
    "resolve",
    "steps",
]

_LIVE_TAILS: Final = 1_000_000
_HISTORY_TAILS: Final = 500_000
_SHORT_TAIL: Final = 12
"""Hex digits behind the last dash of a UUID."""

ONE: Final = f"""\
select {JOB} from {{schema}}.x_jobs j where j.id = $1::uuid and ($2::text is null or j.tenant_id = $2::text)
union all
select {JOB} from {{schema}}.x_jobs_done j where j.id = $1::uuid and ($2::text is null or j.tenant_id = $2::text)
limit 1"""


async def job(links: Links, sql: Sql, id: UUID, tenant: str | None) -> JobRow | None:
    """See `InspectionStore.job`."""
    row = await links.fetchrow(sql(ONE), id, tenant)
    return None if row is None else job_row(row)


# Ids have an index by their head; a tail is looked for in the newest of them.
RESOLVE: Final = f"""\
select x.id from (
  (select j.id from {{schema}}.x_jobs j order by j.id desc limit {_LIVE_TAILS})
  union all
  (select j.id from {{schema}}.x_jobs_done j order by j.id desc limit {_HISTORY_TAILS})) x
 where case when length($1::text) <= {_SHORT_TAIL} then right(x.id::text, length($1::text)) = $1::text
            else right(replace(x.id::text, '-', ''), length($1::text)) = $1::text end
   and ($2::text is null or exists (select from {{schema}}.x_jobs_all a where a.id = x.id and a.tenant_id = $2::text))
 order by x.id limit $3::int"""


async def resolve(links: Links, sql: Sql, tail: str, tenant: str | None, limit: int) -> list[UUID]:
    """See `InspectionStore.resolve`."""
    return [row["id"] for row in await links.fetch(sql(RESOLVE), tail.replace("-", "").lower(), tenant, limit)]


INPUT: Final = """\
select j.input::text from {schema}.x_jobs j where j.id = $1::uuid
union all select j.input::text from {schema}.x_jobs_done j where j.id = $1::uuid limit 1"""


async def input_of(links: Links, sql: Sql, id: UUID) -> str | None:
    """See `InspectionStore.input`."""
    text: str | None = await links.fetchval(sql(INPUT), id)
    return text


STEPS: Final = f"select {STEP} from {{schema}}.x_job_steps where run_id = $1::uuid order by position, started_at, name"


async def steps(links: Links, sql: Sql, run_id: UUID) -> list[StepRecord]:
    """See `InspectionStore.steps`."""
    return [step_record(row) for row in await links.fetch(sql(STEPS), run_id)]


ATTEMPTS: Final = f"select {ATTEMPT} from {{schema}}.x_job_attempts where run_id = $1::uuid order by lease_no"


async def attempts(links: Links, sql: Sql, run_id: UUID) -> list[AttemptRecord]:
    """See `InspectionStore.attempts`."""
    return [attempt_record(row) for row in await links.fetch(sql(ATTEMPTS), run_id)]


LEASES: Final = """\
select j.id, j.run_id, j.name, j.queue, j.tenant_id, j.worker_id, j.attempt, j.max_attempts, j.lease_no, j.running_step,
       j.started_at, j.lease_until, j.lease_until < now() as expired, j.progress::text as progress
  from {schema}.x_jobs j where j.state = 'running' and j.lease_until is not null order by j.lease_until, j.id
    limit $1::int"""


async def leases(links: Links, sql: Sql, limit: int) -> list[LeaseRow]:
    """See `InspectionStore.leases`."""
    return [lease_row(row) for row in await links.fetch(sql(LEASES), limit)]
