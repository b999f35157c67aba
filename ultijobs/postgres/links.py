"""Supervised connections: opened when first used, replaced when lost, with a time limit on all that they do."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.postgres.faults import as_users_see_it, is_away, is_server_answer, unavailable
from ultijobs.postgres.place import Place

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["Links"]

WAIT_WITHIN: Final = 10.0
"""How long a caller waits for its turn on a busy link."""

_CLIENT_MARGIN: Final = 1.5
_REPLAN_FIRST: Final = 60.0
_REPLAN_EVERY: Final = 600.0


class Held:
    """An open connection and when its plans are due to be made anew."""

    __slots__ = ("connection", "replan_at")

    def __init__(self, connection: Connection[Record]) -> None:
        self.connection = connection
        self.replan_at = time.monotonic() + _REPLAN_FIRST


class Links:
    """Up to `size` connections for one kind of work. Belongs to the loop that uses it first.

    A statement that fails because the database is away raises `DriverUnavailable`; whether it happened is then not
    known. What the server refuses is raised as asyncpg raises it. A call that was cancelled or ran out of time costs
    its connection, never the next caller's answer.
    """

    def __init__(
        self,
        place: Place,
        *,
        size: int = 1,
        limit: float = 5.0,
        hot: bool = False,
        role: str | None = None,
        read_only: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._settings: Final = settings
        self._place: Final = place
        self._limit: Final = limit
        self._hot: Final = hot
        self._role: Final = role
        self._read_only: Final = read_only
        self._idle: Final[deque[Held]] = deque()
        self._turns: Final = asyncio.Semaphore(size)
        self._ending: Final[set[asyncio.Task[None]]] = set()
        self._closed = False

    async def fetch(self, statement: str, *arguments: object, limit: float | None = None) -> list[Record]:
        """All rows of one statement, in its own transaction."""
        async with self.single() as connection:
            return await connection.fetch(statement, *arguments, timeout=(limit or self._limit) + _CLIENT_MARGIN)

    async def fetchrow(self, statement: str, *arguments: object, limit: float | None = None) -> Record | None:
        rows = await self.fetch(statement, *arguments, limit=limit)
        return rows[0] if rows else None

    async def fetchval(self, statement: str, *arguments: object, limit: float | None = None) -> Any:
        """The first column of the first row; None without rows."""
        row = await self.fetchrow(statement, *arguments, limit=limit)
        return None if row is None else row[0]

    def single(self) -> AbstractAsyncContextManager[Connection[Record]]:
        """A connection for one statement, which is its own transaction."""
        # A pooler may take the server away between the messages of one statement, but not inside a transaction.
        return self.transaction(readonly=self._read_only) if self._place.dsn.pgbouncer else self.hold()

    @asynccontextmanager
    async def transaction(self, *, readonly: bool = False) -> AsyncGenerator[Connection[Record]]:
        """A connection with an open transaction: commits at the end, rolls back on an exception."""
        async with self.hold() as connection, connection.transaction(readonly=readonly):
            yield connection

    def hold(self) -> AbstractAsyncContextManager[Connection[Record]]:
        """A connection for the block alone. Raises `DriverUnavailable` when none is to be had in time."""
        return _Turn(self)

    async def take(self) -> Held:
        """As `hold`, for a caller that gives it back by itself."""
        if self._closed:
            raise Invariant("this driver is closed", fix="open it first: `async with app:`")
        if self._turns.locked():
            await self._wait()
        else:
            await self._turns.acquire()
        try:
            return await self._ready()
        except BaseException:
            self._turns.release()
            raise

    def give_back(self, held: Held, failure: BaseException | None) -> None:
        """Keeps the connection if `failure` leaves it usable; raises what a trouble of the database means to users."""
        try:
            if failure is None:
                self._keep(held)
                return
            self._after(held, failure)
        finally:
            self._turns.release()
        told = as_users_see_it(self._place.dsn, failure)
        if told is not None:
            raise told from failure

    async def _wait(self) -> None:
        try:
            # Not wait_for: before Python 3.12 it can swallow the cancellation of a caller whose turn has come.
            async with asyncio.timeout(WAIT_WITHIN):
                await self._turns.acquire()
        except TimeoutError:
            raise DriverUnavailable(
                f"{self._place.dsn.shown}: all connections of this kind were busy for {WAIT_WITHIN:g} s"
            ) from None

    async def close(self) -> None:
        """Closes what is open; a connection in use is closed when its user lets go of it."""
        self._closed = True
        while self._idle:
            self._discard(self._idle.pop())
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _ready(self) -> Held:
        while self._idle:
            held = self._idle.pop()
            if not held.connection.is_closed():
                await self._replan(held)
                return held
        connection = await self._place.connect(
            role=self._role, limit=self._limit, hot=self._hot, read_only=self._read_only, settings=self._settings
        )
        return Held(connection)

    async def _replan(self, held: Held) -> None:
        """Drops generic plans that were made when the tables looked different."""
        if not self._hot or self._place.dsn.pgbouncer or time.monotonic() < held.replan_at:
            return
        held.replan_at = time.monotonic() + _REPLAN_EVERY
        try:
            await held.connection.execute("discard plans", timeout=self._limit)
        except BaseException as failure:
            self._discard(held)
            if isinstance(failure, Exception) and is_away(failure):
                raise unavailable(self._place.dsn, failure) from failure
            raise

    def _after(self, held: Held, failure: BaseException) -> None:
        callers_own = isinstance(failure, Exception) and not is_away(failure)
        if is_server_answer(failure) or (callers_own and not held.connection.is_in_transaction()):
            self._keep(held)
        else:
            self._discard(held)

    def _keep(self, held: Held) -> None:
        if self._closed or held.connection.is_closed():
            self._discard(held)
        else:
            self._idle.append(held)

    def _discard(self, held: Held) -> None:
        task = asyncio.get_running_loop().create_task(_close(held.connection))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _Turn:
    """One block that holds a connection. A class, because it is entered for every statement."""

    __slots__ = ("_held", "_links")

    def __init__(self, links: Links) -> None:
        self._links = links

    async def __aenter__(self) -> Connection[Record]:
        self._held = await self._links.take()
        return self._held.connection

    async def __aexit__(
        self, _: type[BaseException] | None, failure: BaseException | None, __: TracebackType | None
    ) -> None:
        self._links.give_back(self._held, failure)


async def _close(connection: Connection[Record]) -> None:
    try:
        await connection.close(timeout=2)
    except BaseException as failure:
        connection.terminate()
        if not is_away(failure) and not isinstance(failure, asyncpg.PostgresError):
            raise
