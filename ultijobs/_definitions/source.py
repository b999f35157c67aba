"""Where a backfill's rows come from: a table with a key, a SQLAlchemy select, or pages of the caller's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ultijobs._definitions import handlers
from ultijobs.errors import Invariant

__all__ = ["BatchSource", "Pages", "Select", "Table"]

Row = TypeVar("Row")
Other = TypeVar("Other")

Pages: TypeAlias = Callable[[Any], Awaitable[tuple[Sequence[Row], Any]]]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    key: str
    where: str | None
    dsn: str | None


@dataclass(frozen=True, slots=True)
class Select:
    statement: Any
    engine: Any


@dataclass(frozen=True, slots=True)
class BatchSource(Generic[Row]):
    """Rows in a stable order, page by page, from a cursor that survives a restart. Made by the methods below."""

    origin: Table | Select | Pages[Row]

    @staticmethod
    def table(name: str, *, key: str, where: str | None = None, dsn: str | None = None) -> BatchSource[dict[str, Any]]:
        """Rows of a SQL table as dicts, by a unique `key` column; `dsn` None means the application's database."""
        _texts("table", name=name, key=key)
        _texts("table", **{of: value for of, value in (("where", where), ("dsn", dsn)) if value is not None})
        return BatchSource(Table(name, key, where, dsn))

    @staticmethod
    def select(stmt: Any, *, engine: Any) -> BatchSource[Any]:
        """Rows of a SQLAlchemy `select()` that has an order."""
        if stmt is None or engine is None:
            raise Invariant("BatchSource.select: stmt or engine is None", fix="pass a select() and an engine")
        return BatchSource(Select(stmt, engine))

    @staticmethod
    def pages(fn: Pages[Other]) -> BatchSource[Other]:
        """Pages of `async def fn(cursor)`, which answers `(rows, next cursor)`; the first cursor is None, the last too.

        A cursor is stored as JSON.
        """
        given: Any = fn
        if not callable(given) or not handlers.is_async(given):
            raise Invariant(
                f"BatchSource.pages: {given!r:.100} is no async function", fix="pass `async def fn(cursor)`"
            )
        return BatchSource(fn)


def _texts(method: str, **fields: Any) -> None:
    for of, value in fields.items():
        if not isinstance(value, str) or not value.strip():
            raise Invariant(f"BatchSource.{method}: {of} is {value!r:.100}", fix=f"set {of}= to a text")
