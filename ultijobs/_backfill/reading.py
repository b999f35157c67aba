"""A source, opened: pages from a cursor, which is JSON text, so that a resumed pass reads what the first would have."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ultijobs import _json
from ultijobs._backfill.page import Page
from ultijobs._backfill.selecting import SelectReader
from ultijobs._connect import driver_for, tables_of
from ultijobs._definitions.source import Pages, Select, Table
from ultijobs._steps.context import Context
from ultijobs.errors import Invariant

if TYPE_CHECKING:
    from ultijobs._definitions.backfill import BackfillHandle
    from ultijobs.postgres.tables import Tables

__all__ = ["Reader", "reader_of"]


class Reader(Protocol):
    @property
    def keyed(self) -> bool:
        """True where a page has a `last`, and can be asked for no further than a key."""
        ...

    async def read(self, cursor: str | None, to: str | None = None) -> Page:
        """The page at `cursor`, None is the beginning; with `to` only what is not behind that key."""
        ...


@asynccontextmanager
async def reader_of(
    handle: BackfillHandle[Any], ctx: Context[Any], tables: Tables | None, *, batch: int
) -> AsyncGenerator[Reader]:
    """Opens the source of `handle`; `tables` are those of the application's database.

    What it reads is guarded by the run's tenant, as the run's own transactions are.
    """
    origin: Any = handle.source.origin
    what = f"backfill {handle.name}"
    if isinstance(origin, Select):
        yield SelectReader(origin, what, batch, ctx.guard, ctx.guard_sync)
    elif not isinstance(origin, Table):
        yield _Pages(origin, what)
    elif origin.dsn is None:
        yield _Rows(_there(tables, what), origin, batch, ctx)
    else:
        elsewhere = _there(tables_of(driver_for(origin.dsn)), what)
        try:
            yield _Rows(elsewhere, origin, batch, ctx)
        finally:
            await elsewhere.close()


def _there(tables: Tables | None, what: str) -> Tables:
    if tables is None:
        raise Invariant(
            f"{what}: its source is a SQL table, and this queue lies in no SQL database",
            fix='say where it is: BatchSource.table(…, dsn="postgresql://…"), or pass BatchSource.pages(…)',
        )
    return tables


class _Rows:
    keyed = True

    def __init__(self, tables: Tables, table: Table, batch: int, ctx: Context[Any]) -> None:
        self._tables = tables
        self._table = table
        self._batch = batch
        self._ctx = ctx

    async def read(self, cursor: str | None, to: str | None = None) -> Page:
        page = await self._tables.page(
            self._table.name,
            self._table.key,
            self._table.where,
            None if cursor is None else _json.decode(cursor),
            to=None if to is None else _json.decode(to),
            limit=self._batch,
            guard=self._ctx.guard,
        )
        last = None if page.last is None else _json.encode(dict(page.last), what="the cursor")
        return Page(page.rows, last if page.more else None, last)


class _Pages:
    keyed = False

    def __init__(self, fn: Pages[Any], what: str) -> None:
        self._fn = fn
        self._what = what

    async def read(self, cursor: str | None, to: str | None = None) -> Page:  # noqa: ARG002 - it has no keys
        answer: Any = await self._fn(None if cursor is None else _json.decode(cursor))
        try:
            rows, following = answer
            rows = list(rows)
        except (TypeError, ValueError):
            raise Invariant(
                f"{self._what}: its source answered {answer!r:.100}", fix="return (rows, next cursor)"
            ) from None
        if following is None:
            return Page(rows, None)
        text = _json.encode(following, what=f"{self._what}: the cursor")
        if text == cursor:
            raise Invariant(
                f"{self._what}: its source answered the cursor that it was given, {text:.100}",
                fix="return the cursor behind the rows, and None at the end",
            )
        return Page(rows, text)
