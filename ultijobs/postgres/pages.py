"""Lists: keyset pages over live rows and history as one, counts up to a cap, and the ids that an act is applied to.

A filter that no index bounds is tried on a limited number of rows; a page then ends where the looking ended, and the
next one goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.views import Count, JobPage, Sort
from ultijobs._queue.where import Where
from ultijobs.errors import Invariant
from ultijobs.postgres.filters import Arguments, Conditions, conditions, touches
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import JOB, job_row
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["SCANNED", "count", "page", "targets"]

SCANNED: Final = 10_000
"""Rows that one statement looks at for a filter that no index bounds."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Order:
    """The key of a sort: `time` is the column before the id, where there is one; `only` are the rows that it lists."""

    time: str | None
    descending: bool
    only: str | None = None

    @property
    def by(self) -> str:
        way = " desc" if self.descending else ""
        return f"j.{self.time}{way}, j.id{way}" if self.time else f"j.id{way}"

    @property
    def outer(self) -> str:
        return self.by.replace("j.", "u.")


_ORDERS: Final = {
    Sort.NEWEST: _Order(None, descending=True),
    Sort.OLDEST: _Order(None, descending=False),
    Sort.DUE: _Order("run_at", descending=False, only="j.state in ('ready', 'suspended')"),
    Sort.STOPPED: _Order("finished_at", descending=True, only="j.state in ('dead', 'failed')"),
}

_PAGE: Final = """\
with {branches}
select now() as as_of, {ends}, u.*
  from (values (1)) one left join (select * from ({union}) v where v.hit) u on true
 order by {order} limit {limit}"""


async def page(links: Links, sql: Sql, where: Where, sort: Sort, after: str | None, limit: int) -> JobPage:
    """See `InspectionStore.jobs`."""
    order = _ORDERS[sort]
    arguments = Arguments()
    places = [
        name
        for name, history in (("live", False), ("history", True))
        if touches(where, history=history) and not (history and order.only)
    ]
    if not places:
        return JobPage([], None, await links.fetchval("select now()"))
    cursor = _cursor(order, after, arguments)
    branches = [_branch(name, where, order, cursor, arguments, limit) for name in places]
    statement = _PAGE.format(
        branches=",\n".join(branches),
        ends=", ".join(_end(name, order) for name in places),
        union=" union all ".join(f"select * from {name}" for name in places),
        order=order.outer,
        limit=limit + 1,
    )
    rows = await links.fetch(sql(statement), *arguments.values)
    return _paged(rows, places, order, limit)


async def count(links: Links, sql: Sql, where: Where, cap: int) -> Count:
    """See `InspectionStore.count`."""
    total, cut = 0, False
    for history in (False, True):
        if not touches(where, history=history):
            continue
        arguments = Arguments()
        parts = conditions(where, arguments, history=history)
        table = _table(history=history)
        if parts.looked:
            seen = (
                f"select ({parts.hit()}) as hit from {table} j where {parts.where()} order by j.id desc limit {SCANNED}"
            )
            row = await links.fetchrow(
                sql(f"select count(*) filter (where hit) as hits, count(*) as seen from ({seen}) x"), *arguments.values
            )
            assert row is not None
            total += row["hits"]
            cut = cut or row["seen"] == SCANNED
        else:
            rows = f"select from {table} j where {parts.where()} limit {arguments.add(cap + 1)}"
            total += await links.fetchval(sql(f"select count(*) from ({rows}) x"), *arguments.values)
    return Count(min(total, cap), "capped" if cut or total > cap else "exact")


async def targets(links: Links, sql: Sql, where: Where, as_of: datetime, after: UUID | None, limit: int) -> list[UUID]:
    """See `InspectionStore.targets`."""
    arguments = Arguments()
    untouched = [f"j.updated_at <= {arguments.add(as_of)}"]
    beyond = f"j.id > {arguments.add(after)}" if after is not None else "true"
    branches: list[str] = []
    for history in (False, True):
        if not touches(where, history=history):
            continue
        parts = conditions(where, arguments, history=history)
        table = _table(history=history)
        if parts.looked and not history:
            newest = (
                f"select j.id, j.updated_at, ({parts.hit()}) as hit from {table} j where {parts.where()} "
                f"order by j.id desc limit {SCANNED}"
            )
            found = f"select j.id from ({newest}) j where j.hit and {untouched[0]} and {beyond}"
        else:
            found = f"select j.id from {table} j where {parts.where(*parts.looked, *untouched, beyond)}"
        branches.append(f"(select x.id from ({found}) x order by x.id limit {limit})")
    if not branches:
        return []
    rows = await links.fetch(
        sql(f"select u.id from ({' union all '.join(branches)}) u order by u.id limit {limit}"), *arguments.values
    )
    return [row["id"] for row in rows]


def _table(*, history: bool) -> str:
    return "{schema}.x_jobs_done" if history else "{schema}.x_jobs"


def _branch(name: str, where: Where, order: _Order, cursor: str, arguments: Arguments, limit: int) -> str:
    history = name == "history"
    parts = conditions(where, arguments, history=history)
    bounded = parts.where(cursor, *([order.only] if order.only else []))
    most = SCANNED if parts.looked else limit + 1
    columns = _columns(parts)
    return (
        f"{name} as materialized (select {columns} from {_table(history=history)} j "
        f"where {bounded} order by {order.by} limit {most})"
    )


def _columns(parts: Conditions) -> str:
    return f"{JOB}, ({parts.hit()}) as hit"


def _end(name: str, order: _Order) -> str:
    """How many rows a branch looked at and where it stopped, to tell an end from a cut."""
    last = "asc" if order.descending else "desc"
    by = f"{order.time} {last}, id {last}" if order.time else f"id {last}"
    stop = f"(select id from {name} order by {by} limit 1) as {name}_id"
    time = f", (select {order.time} from {name} order by {by} limit 1) as {name}_time" if order.time else ""
    return f"(select count(*) from {name}) as {name}_seen, {stop}{time}"


def _cursor(order: _Order, after: str | None, arguments: Arguments) -> str:
    if after is None:
        return "true"
    time, last = _read_token(after)
    sign = "<" if order.descending else ">"
    if order.time is None:
        return f"j.id {sign} {arguments.add(last)}"
    return f"(j.{order.time}, j.id) {sign} ({arguments.add(time)}::timestamptz, {arguments.add(last)}::uuid)"


def _paged(rows: list[Record], places: list[str], order: _Order, limit: int) -> JobPage:
    first = rows[0]
    cuts = [
        (first[f"{name}_time"] if order.time else _EPOCH, first[f"{name}_id"])
        for name in places
        if first[f"{name}_seen"] >= SCANNED
    ]
    found = [row for row in rows if row["id"] is not None]
    end = (max(cuts) if order.descending else min(cuts)) if cuts else None
    if end is not None:
        found = [row for row in found if _within(_key(row, order), end, order)]
    kept = found[:limit]
    last = _key(kept[-1], order) if len(found) > limit else end
    return JobPage([job_row(row) for row in kept], None if last is None else _token(*last), first["as_of"])


def _within(key: tuple[datetime, UUID], end: tuple[datetime, UUID], order: _Order) -> bool:
    return key >= end if order.descending else key <= end


def _key(row: Record, order: _Order) -> tuple[datetime, UUID]:
    return (row[order.time] if order.time else _EPOCH, row["id"])


def _token(time: datetime, id: UUID) -> str:
    return f"{(time - _EPOCH) // timedelta(microseconds=1):x}.{id.hex}"


def _read_token(token: str) -> tuple[datetime, UUID]:
    micros, _, digits = token.partition(".")
    try:
        return _EPOCH + timedelta(microseconds=int(micros, 16)), UUID(digits)
    except (ValueError, OverflowError):
        raise Invariant(f"{token[:80]!r} is no page's next", fix="give --after what the page before answered") from None
