"""What a failure of the database means: away for now, or a mistake that a second try repeats."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import asyncpg

from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.dsn import Dsn

__all__ = ["is_away", "is_server_answer", "translated", "unavailable"]

_AWAY: Final = (
    OSError,
    EOFError,
    asyncio.TimeoutError,
    ssl.SSLError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)


def is_away(failure: BaseException) -> bool:
    """True when the same call can succeed later: connection lost or refused, server restarting, time limit hit."""
    return isinstance(failure, _AWAY) and not isinstance(failure, asyncpg.DataError)


def is_server_answer(failure: BaseException) -> bool:
    """True when the server refused one statement and the connection itself is as good as before."""
    return isinstance(failure, asyncpg.PostgresError) and not isinstance(
        failure,
        asyncpg.PostgresConnectionError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.CannotConnectNowError
        | asyncpg.ReadOnlySQLTransactionError,
    )


def unavailable(dsn: Dsn, failure: BaseException) -> DriverUnavailable:
    """The failure as users see it: where, and why, without a password."""
    reason = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
    what = "takes no writes" if isinstance(failure, asyncpg.ReadOnlySQLTransactionError) else "does not answer"
    return DriverUnavailable(f"{dsn.shown} {what}: {reason}", fix=_fix(failure), meta={"url": dsn.shown})


def _fix(failure: BaseException) -> str | None:
    if isinstance(failure, asyncpg.ReadOnlySQLTransactionError):
        return "name the primary in the address, or end the database's read-only mode"
    if isinstance(failure, asyncpg.InvalidCatalogNameError):
        return "make the database with createdb, or name another one in the address"
    if isinstance(failure, asyncpg.InvalidAuthorizationSpecificationError):
        return "correct the user and the password in the address"
    return None


@contextmanager
def translated(dsn: Dsn) -> Generator[None]:
    """Raises `DriverUnavailable` for what `is_away`; all else goes on unchanged."""
    try:
        yield
    except Exception as failure:
        if is_away(failure):
            raise unavailable(dsn, failure) from failure
        raise
