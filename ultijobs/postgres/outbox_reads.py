"""What operators see of x_outbox, and how they stage again what was set aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from ultijobs._queue.outbox import OutboxDepth, OutboxKind, OutboxPage, OutboxRow, OutboxState
from ultijobs._queue.records import ActResult
from ultijobs._queue.views import Count
from ultijobs.errors import Invariant, JobNotRetryable, JobUnknown
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["DEPTH", "RESOLVE", "RETRY", "ROWS", "depth", "resolve", "retry", "rows"]

_STATE: Final = """\
case when o.published_at is not null then 'published' when o.set_aside_at is not null then 'set-aside'
     else 'staged' end"""

# Ids are made in the order of time, and have the primary key's index.
ROWS: Final = f"""\
select o.id, o.kind, o.name, case when o.kind = 'job' then o.queue end as queue, o.tenant_id, {_STATE} as state,
       o.attempts, o.last_error, o.staged_at, o.published_at, o.set_aside_at, o.next_at, o.claimed_at, o.claimed_by,
       o.held_by, o.job_id
  from {{schema}}.x_outbox o
 where ($1::uuid is null or o.id < $1::uuid) and (cardinality($2::text[]) = 0 or {_STATE} = any($2::text[]))
   and ($4::text is null or o.tenant_id = $4::text)
 order by o.id desc limit $3::int"""


async def rows(
    links: Links, sql: Sql, states: Sequence[OutboxState], tenant: str | None, after: str | None, limit: int
) -> OutboxPage:
    """See `OutboxStore.rows`."""
    found = await links.fetch(sql(ROWS), _cursor(after), [state.value for state in states], limit + 1, tenant)
    shown = [_shown(row) for row in found[:limit]]
    return OutboxPage(shown, str(shown[-1].id) if len(found) > limit else None)


RESOLVE: Final = """\
select x.id from (select o.id, o.tenant_id from {schema}.x_outbox o order by o.id desc limit 500000) x
 where right(replace(x.id::text, '-', ''), length($1::text)) = $1::text
   and ($3::text is null or x.tenant_id = $3::text)
 order by x.id limit $2::int"""


async def resolve(links: Links, sql: Sql, tail: str, tenant: str | None, limit: int) -> list[UUID]:
    """See `OutboxStore.resolve`."""
    return [row["id"] for row in await links.fetch(sql(RESOLVE), tail.replace("-", "").lower(), limit, tenant)]


DEPTH: Final = """\
select (select count(*) from (select from {schema}.x_outbox o where o.published_at is null and o.set_aside_at is null
                               limit $1::int + 1) s) as staged,
       (select count(*) from (select from {schema}.x_outbox o where o.set_aside_at is not null
                               limit $1::int + 1) a) as set_aside,
       (select o.staged_at from {schema}.x_outbox o where o.published_at is null and o.set_aside_at is null
         order by o.tx_id, o.position limit 1) as oldest,
       (select min(o.set_aside_at) from {schema}.x_outbox o where o.set_aside_at is not null) as oldest_set_aside"""


async def depth(links: Links, sql: Sql, cap: int) -> OutboxDepth:
    """See `OutboxStore.depth`."""
    row = await links.fetchrow(sql(DEPTH), cap)
    assert row is not None, "an aggregate has one row"
    aside = _count(row["set_aside"], cap)
    return OutboxDepth(_count(row["staged"], cap), row["oldest"], aside, row["oldest_set_aside"])


RETRY: Final = """\
with asked as materialized (
  select o.id, o.published_at, o.set_aside_at from {schema}.x_outbox o
   where o.id = any($1::uuid[]) and ($2::text is null or o.tenant_id = $2::text) for update),
freed as (
  update {schema}.x_outbox o set set_aside_at = null, held_by = null, attempts = 0, next_at = null
   where o.set_aside_at is not null and (o.id = any(array(select a.id from asked a where a.set_aside_at is not null))
      or o.held_by = any(array(select a.id from asked a where a.set_aside_at is not null)))
  returning o.id)
select a.id, case when a.published_at is not null then 'published' when a.set_aside_at is null then 'staged'
                  else 'freed' end as fate from asked a
union all
select f.id, 'freed' from freed f where f.id <> all($1::uuid[])"""


async def retry(links: Links, sql: Sql, ids: Sequence[UUID], tenant: str | None) -> list[ActResult]:
    """See `OutboxStore.retry`."""
    fates: dict[UUID, str] = {row["id"]: row["fate"] for row in await links.fetch(sql(RETRY), list(ids), tenant)}
    also = [row for row, fate in fates.items() if fate == "freed" and row not in ids]
    return [_result(row, fates.get(row)) for row in dict.fromkeys([*ids, *also])]


def _result(id: UUID, fate: str | None) -> ActResult:
    if fate == "freed":
        return ActResult(id, done=True)
    if fate is None:
        return ActResult(id, done=False, code=JobUnknown.code, cause=f"there is no outbox row {id}")
    return ActResult(id, done=False, code=JobNotRetryable.code, cause=f"outbox row {id} is {fate}, not set aside")


def _count(value: int, cap: int) -> Count:
    return Count(min(value, cap), "capped" if value > cap else "exact")


def _cursor(after: str | None) -> UUID | None:
    if after is None:
        return None
    try:
        return UUID(after)
    except ValueError:
        raise Invariant(f"{after[:80]!r} is no page's next", fix="give --after what the page before answered") from None


def _shown(row: Any) -> OutboxRow:
    told: dict[str, Any] = dict(row.items())
    told["state"], told["kind"] = OutboxState(row["state"]), OutboxKind(row["kind"])
    return OutboxRow(**told)
