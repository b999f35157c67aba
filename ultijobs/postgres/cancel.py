"""Cancel: a live row leaves x_jobs for history in one statement, which fences whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.records import ActResult
from ultijobs.errors import JobMoved, JobNotCancellable, JobUnknown
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import STORED
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.undo_rows import FOUND, KEPT, OVER

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["CANCEL", "STATES", "cancel", "states_of"]

_LIMIT: Final = 5.0
_CHANGED: Final = {
    "state": "'cancelled'",
    "finished_at": "now()",
    "updated_at": "now()",
    "lease_until": "null",
    "worker_id": "null",
    "running_step": "null",
    "abandoned": "null",
    "behind": "null",
    "cancel_reason": "$2::text",
}
_MOVED: Final = ", ".join(_CHANGED.get(name.strip(), f"d.{name.strip()}") for name in STORED.split(","))

# $1 ids, sorted; $2 reason; $3 tenant or null; $4 the act, or null
CANCEL: Final = f"""\
with u as materialized (
  select x.id from unnest($1::uuid[]) t(id) cross join lateral (
    select j.id from {{schema}}.x_jobs j
     where j.id = t.id and j.state in ('ready', 'running', 'suspended') and ($3::text is null or j.tenant_id = $3::text)
       and j.cancel_reason is null for no key update) x),
d as (delete from {{schema}}.x_jobs j where j.id = any(array(select u.id from u)) returning j.*),
kept as (
  insert into {{schema}}.x_undo ({KEPT})
  select {FOUND.format(act="$4::uuid", kind="cancel", dropped="0", row="d")} from d where $4::uuid is not null
  {OVER}),
moved as (insert into {{schema}}.x_jobs_done ({STORED}) select {_MOVED} from d returning id),
tried as (
  insert into {{schema}}.x_job_attempts (run_id, job_id, lease_no, attempt, worker_id, outcome, started_at, ended_at,
    error)
  select d.run_id, d.id, d.lease_no, d.attempt, d.worker_id, 'cancelled', d.started_at, now(), $2::text
    from d where d.lease_until is not null on conflict do nothing),
freed as (
  update {{schema}}.x_jobs j set behind = null, run_at = greatest(j.run_at, now()), updated_at = now()
   where j.behind = any(array(select d.id from d)) and j.id <> all($1::uuid[]) returning j.queue),
told as materialized (
  select pg_catalog.pg_notify('{{channel}}', x.word)::text
    from (select 'c:' || d.id as word from d where d.lease_until is not null
          union select 'q:' || f.queue from freed f) x)
select m.id, (select count(*) from told) as told from moved m"""

STATES: Final = """\
select j.id, case when j.cancel_reason is not null and j.state in ('ready', 'suspended') then j.cancel_reason
                  when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state,
       j.cancel_reason is not null and j.state in ('ready', 'suspended') as moves
  from {schema}.x_jobs j where j.id = any($1::uuid[]) and ($2::text is null or j.tenant_id = $2::text)
union all
select j.id, j.state, false from {schema}.x_jobs_done j where j.id = any($1::uuid[]) and ($2::text is null
  or j.tenant_id = $2::text)"""


async def cancel(
    links: Links, sql: Sql, ids: Sequence[UUID], reason: str | None, tenant: str | None, act: UUID | None
) -> list[ActResult]:
    """See `Driver.cancel`. A row that is refused is not touched at all."""
    async with links.transaction() as connection:
        rows = await connection.fetch(sql(CANCEL), sorted(set(ids)), reason, tenant, act, timeout=_LIMIT)
        done = {row["id"] for row in rows}
        states = await states_of(connection, sql, [id for id in ids if id not in done], tenant)  # noqa: A001 - the field
    return [_answer(id, done, states) for id in ids]  # noqa: A001 - as above


async def states_of(
    connection: Connection[Record], sql: Sql, ids: Sequence[UUID], tenant: str | None
) -> dict[UUID, tuple[str, bool]]:
    """Where these rows stand, and whether they are held by a move; a row of another tenant does not exist."""
    if not ids:
        return {}
    rows = await connection.fetch(sql(STATES), ids, tenant, timeout=_LIMIT)
    return {row["id"]: (row["state"], row["moves"]) for row in rows}


def _answer(id: UUID, done: set[UUID], states: Mapping[UUID, tuple[str, bool]]) -> ActResult:
    if id in done:
        return ActResult(id, done=True)
    state, moves = states.get(id, (None, False))
    if state is None:
        return ActResult(id, done=False, code=JobUnknown.code, cause=f"there is no job {id}")
    if moves:
        cause = f"job {id} is {state}: finish that move, and cancel it there"
        return ActResult(id, done=False, code=JobMoved.code, cause=cause)
    cause = f"job {id} is {state}; only a live job can be cancelled"
    return ActResult(id, done=False, code=JobNotCancellable.code, cause=cause, meta={"state": state})
