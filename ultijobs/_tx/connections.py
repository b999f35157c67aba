"""One face for the connections of all libraries: fetch rows, and make a few statements one.

A sync connection has the same face: its coroutines never wait, so `at_once` runs them where the caller is.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeVar, cast

from ultijobs._tx.kinds import begun, kind_of, named
from ultijobs._tx.placeholders import pyformat, pyformat_values
from ultijobs.errors import Invariant

__all__ = ["Joined", "at_once", "connection_of", "execute_on"]

T = TypeVar("T")


class Joined(Protocol):
    """What our statements need of a connection."""

    def is_in_transaction(self) -> bool: ...
    def fetch(self, query: str, *args: Any, timeout: float | None = None) -> Coroutine[Any, Any, list[Any]]: ...
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A transaction, or a savepoint of the one that is open."""
        ...


async def connection_of(tx: Any) -> Joined:
    """The connection behind a caller's transaction. Raises `Invariant` for what none can be found behind.

    Statements are written with `$1`; texts and lists of texts go in, and named columns of text come out, so that no
    codec, row factory or search path of the caller's matters.
    """
    kind = kind_of(tx)
    match kind:
        case "asyncpg":
            return _Asyncpg(tx)
        case "psycopg" | "psycopg-async":
            return _Psycopg(tx, waits=kind == "psycopg-async")
        case "sqlalchemy-async-session" | "sqlalchemy-async":
            return _SqlAlchemy(tx if kind == "sqlalchemy-async" else await tx.connection(), waits=True)
        case "sqlalchemy-session" | "sqlalchemy":
            return _SqlAlchemy(tx if kind == "sqlalchemy" else tx.connection(), waits=False)
        case "django":
            return _Django(tx)
        case _:
            raise Invariant(
                f"tx is a {named(tx)}, not a connection that the Postgres driver can join",
                fix="pass a connection or session of asyncpg, SQLAlchemy, psycopg or Django, or tx=False",
            )


async def execute_on(tx: Any, statement: str, params: Sequence[object] = ()) -> list[Any]:
    """Runs one statement, written with `$1`, on a caller's transaction; rows are read by column name."""
    return await (await connection_of(tx)).fetch(statement, *params)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine that waits for nothing, without any event loop."""
    try:
        work.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    work.close()
    raise Invariant("a call on a sync transaction had to wait for an event loop", fix="pass a sync connection as tx")


class _Connection(ABC):
    """A connection whose transactions are spoken of in SQL, so that all libraries nest them the same way.

    Time limits of ours are for asyncpg alone: the others take them from their connection.
    """

    @abstractmethod
    def is_in_transaction(self) -> bool: ...

    @abstractmethod
    async def fetch(self, query: str, *args: Any, **limits: Any) -> list[Any]: ...

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        nested = self.is_in_transaction()
        await self.fetch("savepoint ultijobs" if nested else "begin")
        try:
            yield
        except BaseException:
            # What went wrong inside is what the caller learns, also on a connection that is gone.
            with contextlib.suppress(Exception):
                await self.fetch("rollback to savepoint ultijobs" if nested else "rollback")
            raise
        await self.fetch("release savepoint ultijobs" if nested else "commit")


class _Asyncpg(_Connection):
    def __init__(self, connection: Any) -> None:
        self._connection: Final = connection

    def is_in_transaction(self) -> bool:
        return begun(self._connection, "asyncpg")

    async def fetch(self, query: str, *args: Any, **limits: Any) -> list[Any]:
        return cast("list[Any]", await self._connection.fetch(query, *args, **limits))


class _Psycopg(_Connection):
    def __init__(self, connection: Any, *, waits: bool) -> None:
        self._connection: Final = connection
        self._waits: Final = waits

    def is_in_transaction(self) -> bool:
        return begun(self._connection, "psycopg")

    async def fetch(self, query: str, *args: Any, **_limits: Any) -> list[Any]:
        from psycopg import AsyncCursor, Cursor  # noqa: PLC0415 - optional, and loaded: the caller has a connection
        from psycopg.rows import dict_row  # noqa: PLC0415 - as above
        from psycopg.types.string import StrDumper, TextLoader  # noqa: PLC0415 - as above

        # A cursor of our own: the caller may have set another kind, row factory or codec of text.
        kind: Any = AsyncCursor if self._waits else Cursor
        cursor = kind(self._connection, row_factory=dict_row)
        cursor.adapters.register_dumper(str, StrDumper)
        cursor.adapters.register_loader("text", TextLoader)
        answer = cursor.execute(pyformat(query), pyformat_values(args))
        if self._waits:
            await answer
        rows: list[Any] = []
        if cursor.description is not None:
            fetched = cursor.fetchall()
            rows = await fetched if self._waits else fetched
        closing = cursor.close()
        if self._waits:
            await closing
        return rows


class _SqlAlchemy(_Connection):
    def __init__(self, connection: Any, *, waits: bool) -> None:
        dialect = connection.dialect
        if dialect.name != "postgresql" or dialect.paramstyle not in {"numeric_dollar", "pyformat"}:
            raise Invariant(
                f"tx is a {named(connection)} of the dialect {dialect.name}+{dialect.driver}, which cannot be joined",
                fix="use the dialect postgresql+asyncpg or postgresql+psycopg",
            )
        self._connection: Final = connection
        self._waits: Final = waits
        self._dollars: Final = dialect.paramstyle == "numeric_dollar"

    def is_in_transaction(self) -> bool:
        return begun(self._connection, "sqlalchemy-async" if self._waits else "sqlalchemy")

    async def fetch(self, query: str, *args: Any, **_limits: Any) -> list[Any]:
        if self._dollars:
            answer = self._connection.exec_driver_sql(query, args)
        else:
            answer = self._connection.exec_driver_sql(pyformat(query), pyformat_values(args))
        result = await answer if self._waits else answer
        return list(result.mappings()) if result.returns_rows else []


class _Django(_Connection):
    def __init__(self, connection: Any) -> None:
        if connection.vendor != "postgresql":
            raise Invariant(
                f"tx is a Django connection to {connection.vendor}, which cannot be joined",
                fix='pass django.db.connections["…"] of a database on the postgresql backend',
            )
        self._connection: Final = connection

    def is_in_transaction(self) -> bool:
        return begun(self._connection, "django")

    async def fetch(self, query: str, *args: Any, **_limits: Any) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(pyformat(query), pyformat_values(args))
            if cursor.description is None:
                return []
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
