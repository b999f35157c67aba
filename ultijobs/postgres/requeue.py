"""Requeue: stopped rows are due again, and the step records that are to run again go with them, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg

from ultijobs._queue.records import ActResult, RequeueAsk
from ultijobs.errors import (
    DriverUnavailable,
    Invariant,
    JobDuplicate,
    JobMoved,
    JobNotRetryable,
    JobUnknown,
    StepUnknown,
)
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import STORED
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.undo_rows import FOUND, KEPT, OVER

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = [
    "BACK",
    "DROP_FROM",
    "DROP_ONE",
    "DROP_OVER",
    "FORGET",
    "LOCK",
    "LOCK_HISTORY",
    "NAMES",
    "REMEMBER",
    "REMEMBER_HISTORY",
    "TELL",
    "TWINS",
    "requeue",
]

_LIMIT: Final = 10.0
_TRIES: Final = 3
_STOPPED: Final = frozenset({"dead", "failed", "cancelled"})
_NAMES_SHOWN: Final = 100

_WANTED: Final = """\
x.id, x.run_id, x.name, x.queue, x.tenant_id, x.idempotency_key, x.unique_mode, x.cancel_reason,
x.state not in ('done', 'cancelled') and x.cancel_reason is not null
  or x.state = 'cancelled' and coalesce(x.error_code = 'X_JOB_MOVED', false) as moves,
case when x.state = 'ready' and x.run_at > now() then 'delayed' else x.state end as state"""

# $1 ids, sorted; $2 tenant or null
LOCK: Final = f"""\
select {_WANTED}, false as history from unnest($1::uuid[]) t(id) cross join lateral (
  select j.* from {{schema}}.x_jobs j where j.id = t.id and ($2::text is null or j.tenant_id = $2::text)
    for no key update) x"""

LOCK_HISTORY: Final = f"""\
select {_WANTED}, true as history from unnest($1::uuid[]) t(id) cross join lateral (
  select j.* from {{schema}}.x_jobs_done j where j.id = t.id and ($2::text is null or j.tenant_id = $2::text)
    for update) x"""

# $1 ids; $2 the act; $3 how many step records each has lost
REMEMBER: Final = f"""\
insert into {{schema}}.x_undo ({KEPT})
select {FOUND.format(act="$2::uuid", kind="retry", dropped="t.dropped", row="j")}
  from unnest($1::uuid[], $3::int[]) t(id, dropped) join {{schema}}.x_jobs j on j.id = t.id
{OVER}"""

REMEMBER_HISTORY: Final = f"""\
insert into {{schema}}.x_undo ({KEPT})
select {FOUND.format(act="$2::uuid", kind="retry", dropped="t.dropped", row="j")}
  from unnest($1::uuid[], $3::int[]) t(id, dropped) join {{schema}}.x_jobs_done j on j.id = t.id
{OVER}"""

FORGET: Final = "delete from {schema}.x_undo where job_id = any($1::uuid[])"

# One branch for each index of keys. A row that has let go of its key is no twin, except in the mode rerun.
TWINS: Final = """\
select t.id, x.id as twin, x.state from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[])
       t(id, name, tenant, key, rerun)
 cross join lateral (
   (select j.id, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state
     from {schema}.x_jobs j
     where j.name = t.name and coalesce(j.tenant_id, '') collate "C" = t.tenant and j.idempotency_key = t.key
       and j.key_held
       and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null)
   union all
   (select j.id, case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end from {schema}.x_jobs j
     where t.rerun and j.name = t.name and coalesce(j.tenant_id, '') collate "C" = t.tenant
       and j.idempotency_key = t.key
       and not j.key_held and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null)
   limit 1) x"""

# $1 run ids, $2 the step
DROP_FROM: Final = """\
delete from {schema}.x_job_steps s using {schema}.x_job_steps first
 where first.run_id = any($1::uuid[]) and first.name = $2::text and s.run_id = first.run_id
   and (s.started_at, s.position) >= (first.started_at, first.position)
returning s.run_id"""

# A wait whose deadline is over would end the run at once; it starts over.
DROP_OVER: Final = """\
delete from {schema}.x_job_steps
 where run_id = any($1::uuid[]) and status = 'waiting' and wake_at <= now()
returning run_id"""

DROP_ONE: Final = """\
delete from {schema}.x_job_steps where run_id = any($1::uuid[]) and name = $2::text returning run_id"""

NAMES: Final = """\
select x.run_id, x.name from unnest($1::uuid[]) t(run_id) cross join lateral (
  select s.run_id, s.name from {schema}.x_job_steps s where s.run_id = t.run_id order by s.position, s.name
    limit $2::int) x"""

HAVE: Final = "select run_id from {schema}.x_job_steps where run_id = any($1::uuid[]) and name = $2::text"

_FRESH: Final = """\
state = 'ready', attempt = 0, key_held = true, run_at = now(), due_at = now(), updated_at = now(), started_at = null,
finished_at = null, lease_until = null, worker_id = null, stop_reason = null, cancel_reason = null, progress = null,
  behind = null,
running_step = null, abandoned = null"""

AGAIN: Final = f"update {{schema}}.x_jobs j set {_FRESH} where j.id = any($1::uuid[]) returning j.id"

# A row of history goes back by being inserted anew; the update behind it sets what starts over.
BACK: Final = f"""\
with gone as (delete from {{schema}}.x_jobs_done d where d.id = any($1::uuid[]) returning d.*)
insert into {{schema}}.x_jobs ({STORED}) select {STORED} from gone returning id"""

TELL: Final = "select pg_catalog.pg_notify('{channel}', 'q:' || q)::text from unnest($1::text[]) q"


async def requeue(links: Links, sql: Sql, ask: RequeueAsk) -> list[ActResult]:
    """See `Driver.requeue`. A row that is refused keeps its step records, and so does its run."""
    if ask.from_step is not None and ask.only_step is not None:
        raise Invariant("from_step and only_step exclude each other", fix="give one of them")
    for _ in range(_TRIES):
        try:
            async with links.transaction() as connection:
                answers = await _requeue(connection, sql, ask)
        except asyncpg.UniqueViolationError:
            # A twin was enqueued after we looked for one: now it is there to be seen.
            continue
        return [answers[id] for id in ask.ids]  # noqa: A001 - the word of the field
    raise DriverUnavailable("twins of the jobs were enqueued again and again", fix="retry them again")


async def _requeue(connection: Connection[Record], sql: Sql, ask: RequeueAsk) -> dict[UUID, ActResult]:
    ids = sorted(set(ask.ids))
    found = [
        *await connection.fetch(sql(LOCK), ids, ask.tenant, timeout=_LIMIT),
        *await connection.fetch(sql(LOCK_HISTORY), ids, ask.tenant, timeout=_LIMIT),
    ]
    rows = {row["id"]: row for row in found}
    answers = {id: _unknown(id) for id in ids if id not in rows}  # noqa: A001 - the word of the field
    answers |= {row["id"]: _refused_move(row) for row in found if row["moves"]}
    answers |= {row["id"]: _refused_state(row) for row in found if not row["moves"] and not _may(row, ask)}
    left = [rows[id] for id in dict.fromkeys(ask.ids) if id in rows and id not in answers]  # noqa: A001 - as above
    step = ask.from_step if ask.from_step is not None else ask.only_step
    if step is not None:
        answers |= await _without_step(connection, sql, left, step)
        left = [row for row in left if row["id"] not in answers]
    answers |= await _with_twin(connection, sql, left)
    left = [row for row in left if row["id"] not in answers]
    if left:
        await _start_over(connection, sql, left, ask)
    return answers | {row["id"]: ActResult(row["id"], done=True) for row in left}


def _may(row: Record, ask: RequeueAsk) -> bool:
    return row["state"] in _STOPPED or (ask.allow_done and row["state"] == "done")


async def _start_over(connection: Connection[Record], sql: Sql, rows: Sequence[Record], ask: RequeueAsk) -> None:
    runs = [row["run_id"] for row in rows]
    dropped: list[Record] = []
    if ask.from_step is not None:
        dropped += await connection.fetch(sql(DROP_FROM), runs, ask.from_step, timeout=_LIMIT)
    elif ask.only_step is not None:
        dropped += await connection.fetch(sql(DROP_ONE), runs, ask.only_step, timeout=_LIMIT)
    dropped += await connection.fetch(sql(DROP_OVER), runs, timeout=_LIMIT)
    await _remember(connection, sql, rows, ask.act, Counter(record["run_id"] for record in dropped))
    history = [row["id"] for row in rows if row["history"]]
    if history:
        await connection.fetch(sql(BACK), history, timeout=_LIMIT)
    await connection.fetch(sql(AGAIN), [row["id"] for row in rows], timeout=_LIMIT)
    await connection.fetch(sql(TELL), sorted({row["queue"] for row in rows}), timeout=_LIMIT)


async def _remember(
    connection: Connection[Record], sql: Sql, rows: Sequence[Record], act: UUID | None, dropped: Mapping[UUID, int]
) -> None:
    """Keeps what the rows are before they change. What an earlier act found of them is worthless from here on."""
    if act is None:
        await connection.execute(sql(FORGET), [row["id"] for row in rows], timeout=_LIMIT)
        return
    for statement, wanted in ((REMEMBER, False), (REMEMBER_HISTORY, True)):
        found = [row for row in rows if row["history"] is wanted]
        if found:
            lost = [dropped[row["run_id"]] for row in found]
            await connection.execute(sql(statement), [row["id"] for row in found], act, lost, timeout=_LIMIT)


async def _without_step(
    connection: Connection[Record], sql: Sql, rows: Sequence[Record], step: str
) -> dict[UUID, ActResult]:
    runs = [row["run_id"] for row in rows]
    have = {row["run_id"] for row in await connection.fetch(sql(HAVE), runs, step, timeout=_LIMIT)}
    strangers = [row for row in rows if row["run_id"] not in have]
    if not strangers:
        return {}
    known: dict[UUID, list[str]] = {row["run_id"]: [] for row in strangers}
    for row in await connection.fetch(sql(NAMES), list(known), _NAMES_SHOWN, timeout=_LIMIT):
        known[row["run_id"]].append(row["name"])
    return {row["id"]: _refused_step(row, step, known[row["run_id"]]) for row in strangers}


async def _with_twin(connection: Connection[Record], sql: Sql, rows: Sequence[Record]) -> dict[UUID, ActResult]:
    """Rows whose key a live row holds, or another row of this same call that stands before it."""
    keyed = [row for row in rows if row["idempotency_key"] is not None]
    if not keyed:
        return {}
    twins = await connection.fetch(
        sql(TWINS),
        [row["id"] for row in keyed],
        [row["name"] for row in keyed],
        [row["tenant_id"] or "" for row in keyed],
        [row["idempotency_key"] for row in keyed],
        [row["unique_mode"] == "rerun" for row in keyed],
        timeout=_LIMIT,
    )
    refused = {row["id"]: _refused_twin(row["id"], row["twin"], row["state"]) for row in twins}
    first: dict[tuple[str, str, str], UUID] = {}
    for row in keyed:
        if row["id"] not in refused:
            holder = first.setdefault((row["name"], row["tenant_id"] or "", row["idempotency_key"]), row["id"])
            if holder != row["id"]:
                refused[row["id"]] = _refused_twin(row["id"], holder, "ready")
    return refused


def _unknown(id: UUID) -> ActResult:
    return ActResult(id, done=False, code=JobUnknown.code, cause=f"there is no job {id}")


def _refused_state(row: Record) -> ActResult:
    cause = f"job {row['id']} is {row['state']}; only a stopped job can be retried"
    return ActResult(row["id"], done=False, code=JobNotRetryable.code, cause=cause, meta={"state": row["state"]})


def _refused_move(row: Record) -> ActResult:
    cause = f"job {row['id']} {'has' if row['history'] else 'is'} {row['cancel_reason']}: it goes on there"
    return ActResult(row["id"], done=False, code=JobMoved.code, cause=cause)


def _refused_step(row: Record, step: str, known: list[str]) -> ActResult:
    cause = f"run {row['run_id']} has no step {step!r}; it has: {', '.join(known) or 'none'}"
    return ActResult(row["id"], done=False, code=StepUnknown.code, cause=cause, meta={"known": known})


def _refused_twin(id: UUID, twin: UUID, state: str) -> ActResult:
    cause = f"job {twin} is {state} and has the same key"
    meta = {"existing_id": str(twin), "state": state}
    return ActResult(id, done=False, code=JobDuplicate.code, cause=cause, meta=meta)
