"""Where a backfill's rows come from: a table with a key, a SQLAlchemy select, or pages of the caller's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
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
    dsn: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    statement: Any
    engine: Any


@dataclass(frozen=True, slots=True)
class BatchSource(Generic[Row]):
    """Rows in a stable order, page by page, from a cursor that survives a restart. Made by the methods below.

    A row that comes behind the cursor while a pass runs is found when the source is begun anew, which a pass does a few
    times while its `count()` says that rows are left.
    """

    origin: Table | Select | Pages[Row]

    @property
    def text(self) -> Any:
        """What its checksum is made of: the text that says which rows these are, or the function that reads them."""
        origin = self.origin
        if isinstance(origin, Table):
            return f"table {origin.name} by {origin.key} where {origin.where}"
        return f"select {origin.statement}" if isinstance(origin, Select) else origin

    @staticmethod
    def table(name: str, *, key: str, where: str | None = None, dsn: str | None = None) -> BatchSource[dict[str, Any]]:
        """Rows of a PostgreSQL table as dicts, in the order of `key`; `dsn` None means the application's database.

        `name` may have its schema in front. `key` is a column without nulls that no two rows share, or several with
        commas that are so together; an index on it keeps each page cheap. `where` is SQL of your own, taken as it is.
        Names are quoted: write them as they are stored.
        """
        _texts("table", name=name, key=key)
        _texts("table", **{of: value for of, value in (("where", where), ("dsn", dsn)) if value is not None})
        return BatchSource(Table(name, key, where, dsn))

    @staticmethod
    def select(stmt: Any, *, engine: Any) -> BatchSource[Any]:
        """Rows of a SQLAlchemy `select()`, on an `Engine` or an `AsyncEngine`.

        Its `order_by` is the key: columns that it selects, without nulls, which no two rows share together.
        """
        if stmt is None or engine is None:
            raise Invariant("BatchSource.select: stmt or engine is None", fix="pass a select() and an engine")
        if not getattr(stmt, "_order_by_clauses", ()):
            raise Invariant(
                "BatchSource.select: the statement has no order", fix="add .order_by(…) with a column that is unique"
            )
        return BatchSource(Select(stmt, engine))

    @staticmethod
    def pages(fn: Pages[Other]) -> BatchSource[Other]:
        """Pages of `async def fn(cursor)`, which answers `(rows, next cursor)`; the first cursor is None, the last too.

        A cursor is stored as JSON, and comes back as that says. A page without rows is no end: only None is.
        """
        given: Any = fn
        if not callable(given) or not handlers.is_async(given) or not handlers.takes_positions(given, 1):
            raise Invariant(
                f"BatchSource.pages: {given!r:.100} is no async function", fix="pass `async def fn(cursor)`"
            )
        return BatchSource(fn)


def _texts(method: str, **fields: Any) -> None:
    for of, value in fields.items():
        if not isinstance(value, str) or not value.strip():
            raise Invariant(f"BatchSource.{method}: {of} is {value!r:.100}", fix=f"set {of}= to a text")
