"""Types for annotations: durations, and the transactions of a caller that an enqueue can join."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from ultijobs._durations import Duration

__all__ = ["AsyncTx", "Duration", "SyncTx"]


class AsyncTx(Protocol):
    """An open transaction of async code: an asyncpg or psycopg connection, a SQLAlchemy session or connection."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class SyncTx(Protocol):
    """An open transaction of sync code: a SQLAlchemy session or connection, a psycopg or a Django connection."""

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
