"""Whose transaction an enqueue joins: recognised by type without importing any library, and bound for a block.

A connection without an open transaction commits each statement, and the enqueue with it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from ultijobs._tx.connections import connection_of
from ultijobs._tx.kinds import ASYNC, SYNC, begun, kind_of, named
from ultijobs.errors import Invariant, OutboxNoTx

__all__ = ["bind", "joined", "savepoint"]


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
    if required and not begun(tx, kind_of(tx)):
        raise OutboxNoTx(
            f"{call}: the {named(tx)} has no open transaction, each statement commits", fix="open one around the call"
        )
    found: object = tx
    return found


@asynccontextmanager
async def savepoint(tx: Any, *, needed: bool) -> AsyncGenerator[None]:
    """Undoes the block alone when it raises, on a caller's connection; a driver's own transaction decides itself."""
    if needed and kind_of(tx) != "own":
        async with (await connection_of(tx)).transaction():
            yield
    else:
        yield


def _check(tx: Any, *, sync: bool, call: str) -> None:
    kind = kind_of(tx)
    if kind is None:
        raise Invariant(
            f"{call}: tx is a {named(tx)}, not a transaction that can be joined",
            fix="pass a connection or session of asyncpg, SQLAlchemy, psycopg or Django",
        )
    if sync and kind in ASYNC:
        raise Invariant(f"{call} is given the async {named(tx)}", fix=f"await {_async_name(call)}(…, tx=…) instead")
    if not sync and kind in SYNC:
        raise Invariant(f"{call} is given the sync {named(tx)}", fix=f"call {_sync_name(call)}(…, tx=…) instead")


def _async_name(call: str) -> str:
    return call.replace("_sync", "")


def _sync_name(call: str) -> str:
    return call if call == "transaction" else f"{call}_sync"
