"""x_undo: retries and cancels are taken back, in one transaction, as long as nothing has come of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg

from ultijobs._queue.records import ActResult
from ultijobs._queue.undoing import REMEMBERED, Standing, in_the_way, untouched
from ultijobs._queue.views import Count
from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.links import Links
from ultijobs.postgres.requeue import LOCK, LOCK_HISTORY, TELL, TWINS
from ultijobs.postgres.rows import STORED
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.undo_rows import CHANGED

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["COUNT", "ENDED", "FORGET", "JOBS", "LIVE", "STANDING", "STOPPED", "TAKEN_BACK", "PostgresUndo", "forget"]

_LIMIT: Final = 10.0
_TRIES: Final = 3

_OF_TENANT: Final = """\
(TENANT is null or exists (select from {schema}.x_jobs j where j.id = u.job_id and j.tenant_id = TENANT)
  or exists (select from {schema}.x_jobs_done d where d.id = u.job_id and d.tenant_id = TENANT))"""

JOBS: Final = f"""\
select u.job_id from {{schema}}.x_undo u
 where u.act = $1::uuid and ($2::uuid is null or u.job_id > $2::uuid) and {_OF_TENANT.replace("TENANT", "$4::text")}
 order by u.act, u.job_id limit $3::int"""

COUNT: Final = f"""\
select count(*) from (
  select 1 from {{schema}}.x_undo u
   where u.act = $1::uuid and {_OF_TENANT.replace("TENANT", "$3::text")} limit $2::int) x"""

# $1 ids; $2 the act; $3 tenant or null; $4 how long acts are remembered
STANDING: Final = """\
select t.id, u.kind, coalesce(u.dropped, 0) as dropped, coalesce(u.lease_no, 0) as lease_no, u.state as before,
       x.state, coalesce(x.lease_no, 0) as lease_no_now, coalesce(x.moves, false) as moves, x.name, x.queue,
       coalesce(x.tenant_id, '') as tenant, x.idempotency_key, x.unique_mode
  from unnest($1::uuid[]) t(id)
  left join {schema}.x_undo u on u.job_id = t.id and u.act = $2::uuid and u.at > now() - $4::interval
  left join lateral (
    select case when j.state = 'ready' and j.run_at > now() then 'delayed' else j.state end as state, j.lease_no,
           j.cancel_reason is not null as moves, j.name, j.queue, j.tenant_id,
           j.idempotency_key, j.unique_mode
      from {schema}.x_jobs j where j.id = t.id and ($3::text is null or j.tenant_id = $3::text)
    union all
    select d.state, d.lease_no, d.state = 'cancelled' and coalesce(d.error_code = 'X_JOB_MOVED', false), d.name,
           d.queue, d.tenant_id, d.idempotency_key, d.unique_mode
      from {schema}.x_jobs_done d where d.id = t.id and ($3::text is null or d.tenant_id = $3::text)) x on true"""

_BEFORE: Final = ", ".join(f"{name} = u.{name}" for name in CHANGED)
_VALUES: Final = {name: f"u.{name}" for name in CHANGED} | {"updated_at": "now()"}
_AS_BEFORE: Final = ", ".join(_VALUES.get(name.strip(), f"g.{name.strip()}") for name in STORED.split(","))

# A retry of what was dead or failed.
STOPPED: Final = f"""\
update {{schema}}.x_jobs j set {_BEFORE}, updated_at = now()
  from {{schema}}.x_undo u where u.job_id = j.id and j.id = any($1::uuid[]) returning j.id"""

# A retry of what was in history.
ENDED: Final = f"""\
with g as (delete from {{schema}}.x_jobs j where j.id = any($1::uuid[]) returning j.*)
insert into {{schema}}.x_jobs_done ({STORED})
select {_AS_BEFORE} from g join {{schema}}.x_undo u on u.job_id = g.id returning id"""

# A cancel of what had never started.
LIVE: Final = f"""\
with g as (delete from {{schema}}.x_jobs_done d where d.id = any($1::uuid[]) returning d.*)
insert into {{schema}}.x_jobs ({STORED})
select {_AS_BEFORE} from g join {{schema}}.x_undo u on u.job_id = g.id returning id"""

TAKEN_BACK: Final = "delete from {schema}.x_undo where job_id = any($1::uuid[])"

FORGET: Final = """\
delete from {schema}.x_undo where job_id = any(array(
  select u.job_id from {schema}.x_undo u where u.at < now() - $1::interval order by u.at limit 10000))"""


class PostgresUndo:
    """See `UndoStore`."""

    def __init__(self, links: Links, reads: Links, sql: Sql) -> None:
        self._links: Final = links
        self._reads: Final = reads
        self._sql: Final = sql

    async def jobs(
        self, act: UUID, *, after: UUID | None = None, limit: int = 500, tenant: str | None = None
    ) -> list[UUID]:
        return [row["job_id"] for row in await self._reads.fetch(self._sql(JOBS), act, after, limit, tenant)]

    async def count(self, act: UUID, *, cap: int = 10_000, tenant: str | None = None) -> Count:
        found: int = await self._reads.fetchval(self._sql(COUNT), act, cap + 1, tenant)
        return Count(min(found, cap), "capped" if found > cap else "exact")

    async def foresee(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        async with self._reads.transaction(readonly=True) as connection:
            answers, _ = await self._answers(connection, act, ids, tenant)
        return [answers[id] for id in ids]  # noqa: A001 - the word of the field

    async def undo(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        for _ in range(_TRIES):
            try:
                async with self._links.transaction() as connection:
                    await connection.fetch(self._sql(LOCK), sorted(set(ids)), tenant, timeout=_LIMIT)
                    await connection.fetch(self._sql(LOCK_HISTORY), sorted(set(ids)), tenant, timeout=_LIMIT)
                    answers, rows = await self._answers(connection, act, ids, tenant)
                    await self._take_back(connection, rows)
            except asyncpg.UniqueViolationError:
                # A twin was enqueued after we looked for one: now it is there to be seen.
                continue
            return [answers[id] for id in ids]  # noqa: A001 - the word of the field
        raise DriverUnavailable("twins of the jobs were enqueued again and again", fix="undo it again")

    async def _answers(
        self, connection: Connection[Record], act: UUID, ids: Sequence[UUID], tenant: str | None
    ) -> tuple[dict[UUID, ActResult], list[Record]]:
        """What becomes of each, and the rows that can be what they were."""
        wanted = sorted(set(ids))
        found = await connection.fetch(self._sql(STANDING), wanted, act, tenant, REMEMBERED, timeout=_LIMIT)
        answers = {row["id"]: untouched(_standing(row)) or ActResult(row["id"], done=True) for row in found}
        back = [row for row in found if row["kind"] == "cancel" and answers[row["id"]].done]
        answers |= await self._twins(connection, [row for row in back if row["idempotency_key"] is not None])
        return answers, [row for row in found if answers[row["id"]].done]

    async def _twins(self, connection: Connection[Record], rows: Sequence[Record]) -> dict[UUID, ActResult]:
        if not rows:
            return {}
        twins = await connection.fetch(
            self._sql(TWINS),
            [row["id"] for row in rows],
            [row["name"] for row in rows],
            [row["tenant"] for row in rows],
            [row["idempotency_key"] for row in rows],
            [row["unique_mode"] == "rerun" for row in rows],
            timeout=_LIMIT,
        )
        return {row["id"]: in_the_way(row["id"], row["twin"], row["state"]) for row in twins}

    async def _take_back(self, connection: Connection[Record], rows: Sequence[Record]) -> None:
        live = [row for row in rows if row["kind"] == "cancel"]
        ended = [row["id"] for row in rows if row["kind"] == "retry" and row["before"] in {"done", "cancelled"}]
        stopped = [row["id"] for row in rows if row["kind"] == "retry" and row["id"] not in ended]
        for statement, ids in ((STOPPED, stopped), (ENDED, ended), (LIVE, [row["id"] for row in live])):
            if ids:
                await connection.fetch(self._sql(statement), ids, timeout=_LIMIT)
        if rows:
            await connection.execute(self._sql(TAKEN_BACK), [row["id"] for row in rows], timeout=_LIMIT)
        if live:
            await connection.fetch(self._sql(TELL), sorted({row["queue"] for row in live}), timeout=_LIMIT)


async def forget(links: Links, sql: Sql) -> None:
    """Acts of more than a day ago are not taken back."""
    await links.fetch(sql(FORGET), REMEMBERED)


def _standing(row: Record) -> Standing:
    return Standing(
        id=row["id"],
        act=row["kind"],
        dropped=row["dropped"],
        lease_no=row["lease_no"],
        state=row["state"],
        lease_no_now=row["lease_no_now"],
        moves=row["moves"],
    )
