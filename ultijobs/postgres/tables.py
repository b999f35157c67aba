"""Reads of an application's own tables for backfills: pages by key, and the migrations that it has applied."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.postgres.links import Links
from ultijobs.postgres.place import Place

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["COLUMNS", "RELATIONS", "Applied", "TablePage", "Tables"]

PAGE_WITHIN: Final = 300.0
"""Seconds that one page may take: a filter without an index reads far for it."""
_CURSOR: Final = "ultijobs_cursor_"

Guard: TypeAlias = Callable[[Any], Awaitable[None]]

COLUMNS: Final = """\
select a.attname::text as name, format_type(a.atttypid, a.atttypmod)::text as type
  from pg_attribute a where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped"""

RELATIONS: Final = """\
select to_regclass('alembic_version') is not null as alembic,
       to_regclass('django_migrations') is not null as django"""

# Of tables that are not ours, and need not be there.
_ALEMBIC: Final = "select version_num::text as id from alembic_version"
_DJANGO: Final = "select app::text as app, name::text as name from django_migrations"


@dataclass(frozen=True, slots=True)
class TablePage:
    """Rows in the order of the key. `more` is false when the table surely ends with them."""

    rows: list[dict[str, Any]]
    last: Mapping[str, str] | None
    """The key of the last of them, as text."""
    more: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """The migrations that the database says are applied. Alembic keeps its heads alone."""

    alembic: frozenset[str]
    django: frozenset[str]
    """As `app.name`."""


class Tables:
    """Reads the tables of one database. Each page is a transaction of its own; none is open between two."""

    def __init__(self, place: Place) -> None:
        self._links: Final = Links(place, size=2, limit=PAGE_WITHIN)
        self._types: Final[dict[str, dict[str, str]]] = {}

    async def close(self) -> None:
        await self._links.close()

    async def page(
        self,
        table: str,
        key: str,
        where: str | None,
        after: Mapping[str, str] | None,
        *,
        to: Mapping[str, str] | None = None,
        limit: int,
        guard: Guard | None = None,
    ) -> TablePage:
        """Up to `limit` rows behind the key `after`, none behind `to`, as dicts; rows without a key are left out.

        `guard` gets the connection in its transaction, before the rows are read. Raises `Invariant` for a table or a
        column that is not there, and `DriverUnavailable`.
        """
        names = _split(key, ",")
        for cursor in (after, to):
            if cursor is not None and list(cursor) != names:
                raise Invariant(
                    f"the cursor is of the key {', '.join(cursor)}, and the source declares {', '.join(names)}",
                    fix="leave the key of a pass that has begun as it is, or start a new pass",
                )
        async with self._links.transaction(readonly=True) as connection:
            types = await self._columns(connection, table, names)
            if guard is not None:
                await guard(connection)
            statement = _statement(table, names, types, where, limit, begun=after is not None, ends=to is not None)
            rows = await connection.fetch(statement, *(after or {}).values(), *(to or {}).values())
        places = [f"{_CURSOR}{at}" for at in range(len(names))]
        last = {name: rows[-1][place] for name, place in zip(names, places, strict=True)} if rows else None
        return TablePage([_plain(row, places) for row in rows], last, more=len(rows) >= limit)

    async def applied(self) -> Applied:
        """What Alembic and Django have recorded; a table that does not exist records nothing.

        Raises `DriverUnavailable` when it cannot be read.
        """
        try:
            there = (await self._links.fetch(RELATIONS))[0]
            heads = await self._links.fetch(_ALEMBIC) if there["alembic"] else []
            done = await self._links.fetch(_DJANGO) if there["django"] else []
        except asyncpg.PostgresError as error:
            raise DriverUnavailable(
                f"the list of applied migrations cannot be read: {error}",
                fix="let this role read alembic_version or django_migrations: grant select",
            ) from error
        return Applied(
            alembic=frozenset(row["id"] for row in heads),
            django=frozenset(f"{row['app']}.{row['name']}" for row in done),
        )

    async def _columns(self, connection: Connection[Record], table: str, names: Sequence[str]) -> list[str]:
        """The types of the key's columns: a cursor is text, and is compared as what it was."""
        known = self._types.get(table)
        if known is None:
            known = {row["name"]: row["type"] for row in await connection.fetch(COLUMNS, _quoted(table))}
            if known:
                self._types[table] = known
        missing = [name for name in names if name not in known]
        if missing:
            what = f"the table {table} has no column {missing[0]!r}" if known else f"there is no table {table}"
            raise Invariant(what, fix="correct BatchSource.table(…); names are taken as they are stored, case included")
        return [known[name] for name in names]


def _statement(
    table: str, names: Sequence[str], types: Sequence[str], where: str | None, limit: int, *, begun: bool, ends: bool
) -> str:
    columns = [_name(name) for name in names]
    cursors = ", ".join(f"t.{column}::text as {_CURSOR}{at}" for at, column in enumerate(columns))
    order = ", ".join(f"t.{column}" for column in columns)
    terms = [f"t.{column} is not null" for column in columns]
    given = 0
    for sign, bound in ((">", begun), ("<=", ends)):
        if bound:
            values = ", ".join(f"${at}::text::{kind}" for at, kind in enumerate(types, given + 1))
            terms.append(f"({order}) {sign} ({values})")
            given += len(types)
    # The application's own text has lines of its own: it may end in a comment. The limit is written out for the plan.
    own = "" if where is None else f"\n   and (\n{where}\n)"
    return (
        f"select t.*, {cursors}\n  from {_quoted(table)} t\n where {' and '.join(terms)}{own}\n"
        f" order by {order} limit {limit:d}"
    )


def _plain(row: Record, places: Sequence[str]) -> dict[str, Any]:
    found = dict(row.items())
    for place in places:
        del found[place]
    return found


_PART: Final = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def _quoted(table: str) -> str:
    """The name of a table, perhaps behind its schema's, each as it is stored; a part may be quoted already."""
    parts = [(found[1] or "").replace('""', '"') or found[2].strip() for found in _PART.finditer(table)]
    return ".".join(map(_name, parts))


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _split(text: str, at: str) -> list[str]:
    return [part.strip() for part in text.split(at) if part.strip()]
