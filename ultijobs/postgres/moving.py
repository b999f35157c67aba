"""Moves on Postgres. A held job waits behind itself: no claim takes such a row, and nothing frees it but the move."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.moving import Holding, MovedEvent, MovedJob, Place
from ultijobs._queue.records import ActResult
from ultijobs.errors import JobMoved, JobNotMovable
from ultijobs.postgres import arriving
from ultijobs.postgres.links import Links
from ultijobs.postgres.moved_rows import EVENT_TYPES, event_columns, unnested
from ultijobs.postgres.rows import STORED
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = [
    "DATABASE",
    "DEPART",
    "ENDED",
    "EVENTS",
    "HOLD",
    "LET_GO",
    "MARK",
    "RECEIVE_EVENTS",
    "SYSTEM",
    "PostgresMoves",
]

_LIMIT: Final = 20.0
_MOVABLE: Final = frozenset({"ready", "suspended", "dead", "failed"})

DATABASE: Final = """\
select (select oid from pg_catalog.pg_database where datname = current_database())::text as database,
       inet_server_addr()::text as address, inet_server_port() as port,
       pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') as may"""
SYSTEM: Final = "select system_identifier::text as system from pg_catalog.pg_control_system()"

_OURS: Final = "right(j.cancel_reason, length($2::text)) = $2::text"
"""The job is held for the place whose sign is $2; a live row has no other reason to be cancelled."""

# $1 ids. A job and the one that waits behind it are one family; locked in the order of ids, as every act does.
HOLD: Final = f"""\
with family as (
  select t.id from unnest($1::uuid[]) t(id)
  union
  select f.id from {{schema}}.x_jobs f where f.behind = any($1::uuid[]) and f.state in ('ready', 'suspended')
  union
  select f.behind from {{schema}}.x_jobs f where f.id = any($1::uuid[]) and f.behind is not null)
select {arriving.WHOLE}, j.cancel_reason, j.lease_until is not null as held
  from (select family.id from family order by 1) t cross join lateral (
    select h.* from {{schema}}.x_jobs h where h.id = t.id for no key update) j"""

# $1 ids, $2 whither. Who waits behind another goes on doing so.
MARK: Final = """\
update {schema}.x_jobs j set behind = coalesce(j.behind, j.id), cancel_reason = $2::text
 where j.id = any($1::uuid[]) and j.cancel_reason is null"""

ENDED: Final = """\
select j.id, j.state, j.error_code, j.cancel_reason from {schema}.x_jobs_done j where j.id = any($1::uuid[])"""

_ENDING: Final = {
    "state": "'cancelled'",
    "finished_at": "now()",
    "updated_at": "now()",
    "behind": "null",
    "error_code": "'X_JOB_MOVED'",
    "cancel_reason": "$3::text",
    "worker_id": "null",
}
_ENDED: Final = ", ".join(_ENDING.get(name.strip(), f"d.{name.strip()}") for name in STORED.split(","))

# $1 ids, $2 the place's sign, $3 the reason. Those behind a held one leave with it.
DEPART: Final = f"""\
with held as materialized (
  select x.id from unnest($1::uuid[]) t(id) cross join lateral (
    select j.id from {{schema}}.x_jobs j where j.id = t.id and {_OURS} for no key update) x),
d as (delete from {{schema}}.x_jobs j where j.id = any(array(select held.id from held)) returning j.*)
insert into {{schema}}.x_jobs_done ({STORED}) select {_ENDED} from d returning id"""

LET_GO: Final = f"""\
with mine as materialized (
  select x.id from (select id from unnest($1::uuid[]) t(id) order by 1) t cross join lateral (
    select j.id from {{schema}}.x_jobs j where j.id = t.id and {_OURS} for no key update) x),
freed as (
  update {{schema}}.x_jobs j set behind = nullif(j.behind, j.id), cancel_reason = null
   where j.id = any(array(select mine.id from mine)) returning j.queue)
select pg_catalog.pg_notify('{{channel}}', 'q:' || q.queue)::text from (select distinct freed.queue from freed) q"""

EVENTS: Final = """\
select e.id, e.name, e.key, e.payload::text as payload, e.published_at, e.expires_at, e.published_by
  from {schema}.x_job_events e
 where e.published_at >= $1::timestamptz and e.expires_at > now() and ($2::uuid is null or e.id > $2::uuid)
 order by e.id limit $3::int"""

RECEIVE_EVENTS: Final = f"""\
insert into {{schema}}.x_job_events ({", ".join(EVENT_TYPES)})
select {unnested(EVENT_TYPES)} order by t.id on conflict do nothing returning id"""


class PostgresMoves:
    """See `MoveStore`."""

    __slots__ = ("_links", "_reads", "_sql")

    def __init__(self, links: Links, reads: Links, sql: Sql) -> None:
        self._links = links
        self._reads = reads
        self._sql = sql

    async def place(self) -> Place:
        row = await self._reads.fetchrow(DATABASE)
        assert row is not None
        # Without the right to ask for the cluster's own number, its address stands for it.
        system = await self._reads.fetchval(SYSTEM) if row["may"] else f"{row['address']}:{row['port']}"
        told = "\0".join((system, row["database"], self._sql.schema))
        return Place(hashlib.sha256(told.encode()).hexdigest()[:12], durable=True)

    async def hold(self, ids: Sequence[UUID], *, to: str, identity: str) -> Holding:
        async with self._links.transaction() as connection:
            rows = await connection.fetch(self._sql(HOLD), sorted(set(ids)), timeout=_LIMIT)
            gone = [job for job in ids if job not in {row["id"] for row in rows}]
            refused = {row["id"]: _departed(row) for row in await self._ended(connection, gone, identity)}
            refused |= {row["id"]: cause for row in rows if (cause := _unmovable(row, identity)) is not None}
            refused |= {row["id"]: _follower(row) for row in rows if _bound(row, rows, refused)}
            taken = [row for row in rows if row["id"] not in refused]
            await connection.execute(
                self._sql(MARK), [row["id"] for row in taken], f"moving to {to}{_sign(identity)}", timeout=_LIMIT
            )
            return Holding(await arriving.whole(connection, self._sql, taken), list(refused.values()))

    async def _ended(self, connection: Connection[Record], ids: Sequence[UUID], identity: str) -> list[Record]:
        """Those that ended here for another reason than this move."""
        rows = await connection.fetch(self._sql(ENDED), ids, timeout=_LIMIT) if ids else []
        return [row for row in rows if not (row["cancel_reason"] or "").endswith(_sign(identity))]

    async def receive(self, jobs: Sequence[MovedJob]) -> list[ActResult]:
        return await arriving.receive(self._links, self._sql, jobs)

    async def present(self, ids: Sequence[UUID]) -> Mapping[UUID, MovedJob]:
        async with self._links.transaction() as connection:
            rows = await connection.fetch(self._sql(arriving.PRESENT), list(ids), timeout=_LIMIT)
            return {job.id: job for job in await arriving.whole(connection, self._sql, rows)}

    async def depart(self, ids: Sequence[UUID], *, to: str, identity: str) -> list[ActResult]:
        sign = _sign(identity)
        async with self._links.transaction() as connection:
            rows = await connection.fetch(
                self._sql(DEPART), sorted(set(ids)), sign, f"moved to {to}{sign}", timeout=_LIMIT
            )
            done = {row["id"] for row in rows}
            left = [job for job in ids if job not in done]
            past = {row["id"]: row for row in await connection.fetch(self._sql(ENDED), left, timeout=_LIMIT)}
        return [
            ActResult(job, done=True)
            if job in done or (job in past and (past[job]["cancel_reason"] or "").endswith(sign))
            else _refused(job, JobNotMovable.code, f"job {job} is not held for this move any more")
            for job in ids
        ]

    async def let_go(self, ids: Sequence[UUID], *, identity: str) -> None:
        async with self._links.transaction() as connection:
            await connection.fetch(self._sql(LET_GO), list(ids), _sign(identity), timeout=_LIMIT)

    async def events(self, *, since: datetime, after: UUID | None = None, limit: int = 500) -> list[MovedEvent]:
        rows = await self._links.fetch(self._sql(EVENTS), since, after, limit)
        return [MovedEvent(**dict(row.items())) for row in rows]

    async def receive_events(self, events: Sequence[MovedEvent]) -> int:
        return len(await self._links.fetch(self._sql(RECEIVE_EVENTS), *event_columns(events))) if events else 0


def _sign(identity: str) -> str:
    """How a reason ends that speaks of that place."""
    return f" [{identity}]"


def _unmovable(row: Record, identity: str) -> ActResult | None:
    id = row["id"]  # noqa: A001 - the word of the column
    if row["held"] or row["state"] not in _MOVABLE:
        return _refused(id, JobNotMovable.code, f"job {id} is {row['state']}: it stays until it ends")
    if row["cancel_reason"] is not None and not row["cancel_reason"].endswith(_sign(identity)):
        return _refused(id, JobMoved.code, f"job {id} is {row['cancel_reason']}: finish that move first")
    return None


def _bound(row: Record, rows: Sequence[Record], refused: Mapping[UUID, ActResult]) -> bool:
    """It waits behind a job that does not come along."""
    leader = row["behind"]
    return leader not in {None, row["id"]} and (leader in refused or leader not in {other["id"] for other in rows})


def _follower(row: Record) -> ActResult:
    return _refused(row["id"], JobNotMovable.code, f"job {row['id']} waits behind job {row['behind']}, which stays")


def _departed(row: Record) -> ActResult:
    return _refused(row["id"], JobNotMovable.code, f"job {row['id']} is {row['state']} by now")


def _refused(id: UUID, code: str, cause: str) -> ActResult:
    return ActResult(id, done=False, code=code, cause=cause)
