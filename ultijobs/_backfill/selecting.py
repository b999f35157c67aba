"""Pages of a SQLAlchemy `select()`, by the values of what it is ordered by. SQLAlchemy is the caller's own."""

from __future__ import annotations

import asyncio
import decimal
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, cast

from ultijobs import _json
from ultijobs._backfill.page import Page
from ultijobs._definitions.source import Select
from ultijobs.errors import Invariant

__all__ = ["SelectReader"]

# Types whose values are keys, and how one is told from its text.
_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


class SelectReader:
    """Each page is a transaction of its own on the caller's engine, over before its rows are handled."""

    keyed = True

    def __init__(
        self,
        select: Select,
        what: str,
        batch: int,
        guard: Callable[[Any], Awaitable[None]],
        guard_sync: Callable[[Any], None],
    ) -> None:
        self._select = select
        self._what = what
        self._batch = batch
        self._guard = guard
        self._guard_sync = guard_sync
        statement = select.statement
        clauses = statement._order_by_clauses  # noqa: SLF001 - there is no other way to them
        self._order = [_direction(each, statement, what) for each in clauses]

    async def read(self, cursor: str | None, to: str | None = None) -> Page:
        statement = self._select.statement.limit(self._batch)
        if cursor is not None:
            statement = statement.where(self._behind([_value(each) for each in _json.decode(cursor)]))
        if to is not None:
            statement = statement.where(~self._behind([_value(each) for each in _json.decode(to)]))
        engine = self._select.engine
        if hasattr(engine, "sync_engine"):
            async with engine.connect() as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    await self._guard(connection)
                rows = (await connection.execute(statement)).all()
        else:
            rows = await asyncio.to_thread(self._read_sync, statement)
        if not rows:
            return Page(rows, None)
        last = _json.encode([_text(value, self._what) for value in self._key(rows[-1])], what=self._what)
        return Page(rows, last if len(rows) >= self._batch else None, last)

    def _read_sync(self, statement: Any) -> Sequence[Any]:
        with self._select.engine.connect() as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                self._guard_sync(connection)
            found: Sequence[Any] = connection.execute(statement).all()
            return found

    def _behind(self, values: Sequence[Any]) -> Any:
        """True for the rows that come after `values`, written out for each column: directions may differ."""
        from sqlalchemy import and_, or_  # noqa: PLC0415 - optional, and loaded: the caller has a statement of it

        terms: list[Any] = []
        # A label is known to what comes behind the rows alone; a filter needs what it stands for.
        order = [(getattr(column, "element", column), descending) for column, descending in self._order]
        for at, ((column, descending), value) in enumerate(zip(order, values, strict=True)):
            same = [known == before for (known, _), before in zip(order[:at], values[:at], strict=True)]
            terms.append(and_(*same, column < value if descending else column > value))
        return or_(*terms)

    def _key(self, row: Any) -> list[Any]:
        try:
            return [row._mapping[column] for column, _ in self._order]  # noqa: SLF001 - documented, the underscore avoids columns
        except KeyError as error:
            raise Invariant(
                f"{self._what}: the statement is ordered by a column that it does not select",
                fix="add the columns of order_by(…) to select(…)",
            ) from error


def _direction(clause: Any, statement: Any, what: str) -> tuple[Any, bool]:
    """A column of the order, and whether it descends."""
    found = _plain(clause, statement)
    modifier = getattr(getattr(found, "modifier", None), "__name__", None)
    if modifier is not None:
        found = _plain(found.element, statement)
    if modifier not in {None, "asc_op", "desc_op"} or not hasattr(found, "comparator"):
        raise Invariant(
            f"{what}: the order {clause} has no key to go on from", fix="order by columns without nulls, as they are"
        )
    return found, modifier == "desc_op"


def _plain(clause: Any, statement: Any) -> Any:
    """What a reference to a column of the statement refers to, whether by itself or by its name."""
    while type(clause).__name__ == "_label_reference":
        clause = clause.element
    if type(clause).__name__ == "_textual_label_reference":
        return statement.selected_columns.get(clause.element)
    return clause


def _text(value: Any, what: str) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    for kind, of in (("uuid", uuid.UUID), ("decimal", decimal.Decimal)):
        if isinstance(value, of):
            return {kind: str(value)}
    if isinstance(value, date):
        return {"datetime" if isinstance(value, datetime) else "date": value.isoformat()}
    raise Invariant(
        f"{what}: the statement is ordered by a {type(value).__name__}, which cannot be a key",
        fix="order by numbers, texts, UUIDs or times",
    )


def _value(text: Any) -> Any:
    if not isinstance(text, dict):
        return text
    ((kind, said),) = cast("dict[str, str]", text).items()
    return _READ[kind](said)
