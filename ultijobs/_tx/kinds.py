"""Which library a caller's transaction is of, told by its class without importing any, and whether it has begun."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

__all__ = ["ASYNC", "SYNC", "Kind", "begun", "kind_of", "named"]

Kind: TypeAlias = Literal[
    "own",
    "asyncpg",
    "psycopg-async",
    "sqlalchemy-async-session",
    "sqlalchemy-async",
    "psycopg",
    "sqlalchemy-session",
    "sqlalchemy",
    "django",
]

ASYNC: Final[frozenset[Kind]] = frozenset({"asyncpg", "psycopg-async", "sqlalchemy-async-session", "sqlalchemy-async"})
SYNC: Final[frozenset[Kind]] = frozenset({"psycopg", "sqlalchemy-session", "sqlalchemy", "django"})

# By module and name of a class in the method resolution order, so that subclasses count.
_KNOWN: Final[dict[tuple[str, str], Kind]] = {
    ("asyncpg.connection", "Connection"): "asyncpg",
    ("asyncpg.pool", "PoolConnectionProxy"): "asyncpg",
    ("sqlalchemy.ext.asyncio.session", "AsyncSession"): "sqlalchemy-async-session",
    ("sqlalchemy.ext.asyncio.scoping", "async_scoped_session"): "sqlalchemy-async-session",
    ("sqlalchemy.ext.asyncio.engine", "AsyncConnection"): "sqlalchemy-async",
    ("psycopg.connection_async", "AsyncConnection"): "psycopg-async",
    ("psycopg", "AsyncConnection"): "psycopg-async",
    ("sqlalchemy.orm.session", "Session"): "sqlalchemy-session",
    ("sqlalchemy.orm.scoping", "scoped_session"): "sqlalchemy-session",
    ("sqlalchemy.engine.base", "Connection"): "sqlalchemy",
    ("psycopg.connection", "Connection"): "psycopg",
    ("psycopg", "Connection"): "psycopg",
    ("django.db.backends.base.base", "BaseDatabaseWrapper"): "django",
    ("django.utils.connection", "ConnectionProxy"): "django",
}


def kind_of(tx: object) -> Kind | None:
    """None for what is no transaction; `own` for one that a driver of this library has opened."""
    for cls in type(tx).__mro__:
        if cls.__module__.partition(".")[0] == "ultijobs":
            return "own"
        kind = _KNOWN.get((cls.__module__, cls.__qualname__))
        if kind is not None:
            return kind
    return None


def named(tx: object) -> str:
    """Its class, as an error names it."""
    return f"{type(tx).__module__}.{type(tx).__qualname__}"


def begun(tx: Any, kind: Kind | None) -> bool:
    """False when each statement on it would commit by itself. A SQLAlchemy session begins with its first statement."""
    match kind:
        case "asyncpg" | "psycopg" | "psycopg-async":
            return _open(tx)
        case "sqlalchemy" | "sqlalchemy-async":
            borrowed = (tx if kind == "sqlalchemy" else tx.sync_connection).connection
            return not borrowed.dbapi_connection.autocommit or _open(borrowed.driver_connection)
        case "django":
            return bool(tx.in_atomic_block) or not tx.get_autocommit() or _open(tx.connection)
        case _:
            return True


def _open(connection: Any) -> bool:
    """True when a statement on this connection of asyncpg or psycopg does not commit by itself."""
    if hasattr(connection, "is_in_transaction"):
        return bool(connection.is_in_transaction())
    return not connection.autocommit or bool(connection.info.transaction_status)
