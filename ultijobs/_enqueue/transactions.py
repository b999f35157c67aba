"""Whose transaction an enqueue joins: recognised by type without importing any library, and bound for a block.

An asyncpg connection without an open transaction commits each statement, and the enqueue with it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

from ultijobs.errors import Invariant, NotImplementedYet, OutboxNoTx

__all__ = ["bind", "joined", "savepoint"]

Kind = Literal["own", "asyncpg", "async", "sync"]

# By module and name of a class in the method resolution order, so that subclasses count.
_KNOWN: Final[dict[tuple[str, str], Kind]] = {
    ("asyncpg.connection", "Connection"): "asyncpg",
    ("asyncpg.pool", "PoolConnectionProxy"): "asyncpg",
    ("sqlalchemy.ext.asyncio.session", "AsyncSession"): "async",
    ("sqlalchemy.ext.asyncio.scoping", "async_scoped_session"): "async",
    ("sqlalchemy.ext.asyncio.engine", "AsyncConnection"): "async",
    ("psycopg.connection_async", "AsyncConnection"): "async",
    ("psycopg", "AsyncConnection"): "async",
    ("sqlalchemy.orm.session", "Session"): "sync",
    ("sqlalchemy.orm.scoping", "scoped_session"): "sync",
    ("sqlalchemy.engine.base", "Connection"): "sync",
    ("psycopg.connection", "Connection"): "sync",
    ("psycopg", "Connection"): "sync",
    ("django.db.backends.base.base", "BaseDatabaseWrapper"): "sync",
    ("django.utils.connection", "ConnectionProxy"): "sync",
}


@dataclass(eq=False, slots=True)
class Bound:
    """A transaction bound for a block. A task that outlives the block finds it ended, and joins nothing."""

    application: object
    tx: object
    ended: bool = False


_BOUND: Final[ContextVar[Bound | None]] = ContextVar("ultijobs_transaction", default=None)


@contextmanager
def bind(application: object, tx: Any, *, sync: bool) -> Generator[None]:
    """Binds `tx` for the enqueues of `application` in this block. Raises like an enqueue that is given `tx`."""
    _check(tx, sync=sync, call="transaction")
    bound = Bound(application, tx)
    token = _BOUND.set(bound)
    try:
        yield
    finally:
        bound.ended = True
        _BOUND.reset(token)


def joined(application: object, tx: Any, *, sync: bool, required: bool, call: str) -> object | None:
    """The transaction that an enqueue joins, or None for its own.

    Raises `Invariant` for a sync transaction in an async call and the reverse; `OutboxNoTx` when one is `required` and
    none is open.
    """
    if tx is False:
        return None
    if tx is None:
        bound = _BOUND.get()
        if bound is not None and bound.application is application and not bound.ended:
            tx = bound.tx
        elif required:
            raise OutboxNoTx(f'{call} outside of a transaction, which App(transactions="required") asks for')
        else:
            return None
    _check(tx, sync=sync, call=call)
    if required and _kind(tx) == "asyncpg" and not tx.is_in_transaction():
        raise OutboxNoTx(
            f"{call}: the connection has no open transaction", fix="open one: async with connection.transaction():"
        )
    found: object = tx
    return found


@asynccontextmanager
async def savepoint(tx: Any, *, needed: bool) -> AsyncGenerator[None]:
    """Undoes the block alone when it raises, where the caller's connection can; elsewhere the transaction decides."""
    if needed and _kind(tx) == "asyncpg":
        async with tx.transaction():
            yield
    else:
        yield


def _check(tx: Any, *, sync: bool, call: str) -> None:
    kind = _kind(tx)
    named = f"{type(tx).__module__}.{type(tx).__qualname__}"
    if kind is None:
        raise Invariant(
            f"{call}: tx is a {named}, no transaction that can be joined",
            fix="pass a connection or session of asyncpg, SQLAlchemy, psycopg or Django",
        )
    if sync and kind in ("asyncpg", "async"):
        raise Invariant(f"{call} is given the async {named}", fix=f"await {_async_name(call)}(…, tx=…) instead")
    if not sync and kind == "sync":
        raise Invariant(f"{call} is given the sync {named}", fix=f"call {_sync_name(call)}(…, tx=…) instead")
    if kind in ("async", "sync"):
        raise NotImplementedYet(
            f"{call} cannot join a transaction of {named} yet", fix="pass an asyncpg connection, or tx=False"
        )


def _kind(tx: Any) -> Kind | None:
    for cls in type(tx).__mro__:
        if cls.__module__.partition(".")[0] == "ultijobs":
            return "own"
        kind = _KNOWN.get((cls.__module__, cls.__qualname__))
        if kind is not None:
            return kind
    return None


def _async_name(call: str) -> str:
    return call.replace("_sync", "")


def _sync_name(call: str) -> str:
    return call if call == "transaction" else f"{call}_sync"
