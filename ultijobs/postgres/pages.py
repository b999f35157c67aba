"""Lists: keyset pages over live rows and history together.

A filter that no index bounds is tried on a limited number of rows. Live rows and history each go on from where their
reading ended, so that nothing is skipped or repeated; while history is cut, its older rows come on later pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from ultijobs._queue.views import JobPage, Sort
from ultijobs._queue.where import Where
from ultijobs.errors import Invariant
from ultijobs.postgres.filters import Arguments, conditions, touches
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import JOB, in_dates, job_row
from ultijobs.postgres.sql import Sql
from ultijobs.postgres.stepping import IN_STREAM, STREAMS

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["SCANNED", "page"]

SCANNED: Final = 10_000
"""Rows that one statement looks at for a filter that no index bounds."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SOURCES: Final = ("live", "history")
_TABLES: Final = {"live": "{schema}.x_jobs", "history": "{schema}.x_jobs_done"}

_Key: TypeAlias = tuple[datetime, UUID]
_Cursor: TypeAlias = dict[str, _Key | None]
"""Where each source goes on; one that is missing has ended."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The key of a sort: `time` is the column before the id, where there is one."""

    time: str | None
    descending: bool
    only: str | None = None
    """What it lists, where that is not everything."""

    def by(self, alias: str) -> str:
        way = " desc" if self.descending else ""
        return ", ".join(f"{alias}.{column}{way}" for column in (self.time, "id") if column)

    def key(self, row: Record, time: str, id: str) -> _Key:
        return (row[time] if self.time else _EPOCH, row[id])


_ORDERS: Final = {
    Sort.NEWEST: _Order(None, descending=True),
    Sort.OLDEST: _Order(None, descending=False),
    Sort.DUE: _Order("run_at", descending=False, only="j.state in ('ready', 'suspended')"),
    Sort.STOPPED: _Order("finished_at", descending=True, only="j.state in ('dead', 'failed')"),
}


async def page(links: Links, sql: Sql, where: Where, sort: Sort, after: str | None, limit: int) -> JobPage:
    """See `InspectionStore.jobs`."""
    order = _ORDERS[sort]
    cursor: _Cursor = dict.fromkeys(_SOURCES) if after is None else _read_token(after)
    sources = [
        source
        for source in _SOURCES
        if source in cursor and touches(where, history=source == "history") and not (source == "history" and order.only)
    ]
    if not sources:
        return JobPage([], None, await links.fetchval("select now()"))
    arguments = Arguments()
    parts = [_source(source, where, order, cursor[source], arguments, limit) for source in sources]
    ends = ", ".join(f"(select count(*) from {s}_ids) as {s}_seen, {_last(s, order)}" for s in sources)
    statement = (
        f"with {'recursive ' + STREAMS + ', ' if sort is Sort.DUE else ''}{', '.join(parts)} "
        f"select now() as as_of, {ends}, u.* from (values (1)) one left join ("
        f"{' union all '.join(f'select * from {source}' for source in sources)}) u on true order by {order.by('u')}"
    )
    return _paged(await links.fetch(sql(statement), *arguments.values), sources, cursor, order, limit)


def _source(source: str, where: Where, order: _Order, after: _Key | None, arguments: Arguments, limit: int) -> str:
    """Two steps: the keys of what is looked at, then the whole rows of as many hits as a page can show."""
    history = source == "history"
    parts = conditions(where, arguments, history=history)
    table = _TABLES[source]
    time = f"j.{order.time}, " if order.time and order.time != "finished_at" else ""
    keys = f"j.id, {time}j.finished_at, ({parts.hit()}) as hit"
    bounded = parts.where(_beyond(order, after, arguments), *([order.only] if order.only else []))
    most = SCANNED if parts.looked else limit + 1
    if order.time == "run_at":
        # Each stream is in this order already; a row that waits behind another is in none.
        ids = (
            f"select x.* from streams s cross join lateral (select {keys} from {table} j "
            f"where {IN_STREAM} and {bounded} order by {order.by('j')} limit {most}) x "
            f"union all select {keys} from {table} j where j.behind is not null and {bounded}"
        )
        ids = f"select y.* from ({ids}) y order by {order.by('y')} limit {most}"
    else:
        ids = f"select {keys} from {table} j where {bounded} order by {order.by('j')} limit {most}"
    same_day = " and j.finished_at = k.finished_at" if history else ""
    return (
        f"{source}_ids as materialized ({ids}), "
        f"{source} as materialized (select '{source}' as source, {JOB} from "
        f"(select * from {source}_ids i where i.hit order by {order.by('i')} limit {limit + 1}) k "
        f"join {table} j on j.id = k.id{same_day})"
    )


def _last(source: str, order: _Order) -> str:
    """Where the looking stopped."""
    turned = _Order(order.time, not order.descending)
    last = f"from {source}_ids z order by {turned.by('z')} limit 1"
    time = f", (select {in_dates(f'z.{order.time}')} {last}) as {source}_time" if order.time else ""
    return f"(select z.id {last}) as {source}_id{time}"


def _beyond(order: _Order, after: _Key | None, arguments: Arguments) -> str:
    if after is None:
        return "true"
    time, last = after
    sign = "<" if order.descending else ">"
    if order.time is None:
        return f"j.id {sign} {arguments.add(last)}"
    return f"(j.{order.time}, j.id) {sign} ({arguments.add(time)}::timestamptz, {arguments.add(last)}::uuid)"


def _paged(rows: list[Record], sources: Sequence[str], cursor: _Cursor, order: _Order, limit: int) -> JobPage:
    first = rows[0]
    found = [row for row in rows if row["id"] is not None]
    kept = found[:limit]
    goes_on: _Cursor = {}
    for source in sources:
        shown = [row for row in kept if row["source"] == source]
        if len(shown) < sum(row["source"] == source for row in found):
            goes_on[source] = order.key(shown[-1], order.time or "", "id") if shown else cursor[source]
        elif first[f"{source}_seen"] >= SCANNED:
            goes_on[source] = order.key(first, f"{source}_time", f"{source}_id")
    return JobPage([job_row(row) for row in kept], _token(goes_on) if goes_on else None, first["as_of"])


def _token(cursor: _Cursor) -> str:
    return "~".join(
        f"{source[0]}" if key is None else f"{source[0]}{(key[0] - _EPOCH) // timedelta(microseconds=1):x}.{key[1].hex}"
        for source, key in cursor.items()
    )


def _read_token(token: str) -> _Cursor:
    names = {source[0]: source for source in _SOURCES}
    cursor: _Cursor = {}
    try:
        for part in token.split("~"):
            micros, _, digits = part[1:].partition(".")
            key = (_EPOCH + timedelta(microseconds=int(micros, 16)), UUID(digits)) if digits else None
            cursor[names[part[:1]]] = key
    except (ValueError, OverflowError, KeyError):
        raise Invariant(f"{token[:80]!r} is no page's next", fix="give --after what the page before answered") from None
    return cursor
