"""What a failure of the database means: away for now, or a mistake that a second try repeats."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import asyncpg

from ultijobs.errors import DriverUnavailable, RightsMissing, UltijobsError
from ultijobs.postgres.dsn import Dsn

__all__ = ["as_users_see_it", "is_away", "is_server_answer", "translated", "unavailable"]

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


_HELD_UP: Final = (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError)
"""A statement ran into its limit: the server is there, and something in it is slow or holds a lock."""


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


def as_users_see_it(dsn: Dsn, failure: BaseException | None) -> UltijobsError | None:
    """What is said in place of the failure; None for one that is no trouble of the database."""
    if isinstance(failure, asyncpg.InsufficientPrivilegeError):
        return RightsMissing(f"{dsn.shown} refuses this role: {failure}", meta={"url": dsn.shown})
    return unavailable(dsn, failure) if isinstance(failure, Exception) and is_away(failure) else None


def unavailable(dsn: Dsn, failure: BaseException) -> DriverUnavailable:
    """Where, and why, without a password."""
    reason = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
    what = "takes no writes" if isinstance(failure, asyncpg.ReadOnlySQLTransactionError) else "does not answer"
    if isinstance(failure, _HELD_UP):
        what = "did not answer in time"
    return DriverUnavailable(f"{dsn.shown} {what}: {reason}", fix=_fix(failure), meta={"url": dsn.shown})


def _fix(failure: BaseException) -> str | None:
    if isinstance(failure, asyncpg.ReadOnlySQLTransactionError):
        return "name the primary in the address, or end the database's read-only mode"
    if isinstance(failure, _HELD_UP):
        return "ultijobs tui --view database --once"
    if isinstance(failure, asyncpg.InvalidCatalogNameError):
        return "make the database with createdb, or name another one in the address"
    if isinstance(failure, asyncpg.InvalidAuthorizationSpecificationError):
        return "correct the user and the password in the address"
    return None


@contextmanager
def translated(dsn: Dsn) -> Generator[None]:
    """Raises `DriverUnavailable` and `RightsMissing` for troubles of the database; all else goes on unchanged."""
    try:
        yield
    except Exception as failure:
        told = as_users_see_it(dsn, failure)
        if told is not None:
            raise told from failure
        raise
