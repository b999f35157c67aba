"""LISTEN on a connection of its own: hints for workers, and word when there are none to be had."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ultijobs._queue.telling import Signal, SignalKind
from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.faults import is_away
from ultijobs.postgres.place import Place
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["subscribed"]

_KINDS: Final = {"q": SignalKind.QUEUE, "c": SignalKind.CANCEL, "w": SignalKind.WORKER, "e": SignalKind.EVENT}
_PROBE: Final = "p"
_PROBE_EVERY: Final = 10.0
_PROBE_WITHIN: Final = 3.0

PROVE: Final = "select pg_notify('{channel}', 'p:' || $1::text)"
PROBE: Final = "select 1"


@asynccontextmanager
async def subscribed(place: Place, sql: Sql, on_signal: Callable[[Signal], None]) -> AsyncGenerator[None]:
    """Calls back on the running loop until the block ends. `LOST` is told once, `BACK` once it listens again."""
    if place.dsn.pgbouncer:
        on_signal(Signal(SignalKind.LOST, "pgbouncer=1"))
        yield
        return
    listener = _Listener(place, sql, on_signal)
    task = asyncio.get_running_loop().create_task(listener.run())
    try:
        await listener.first_try.wait()
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class _Listener:
    def __init__(self, place: Place, sql: Sql, on_signal: Callable[[Signal], None]) -> None:
        self._place: Final = place
        self._sql: Final = sql
        self._on_signal: Final = on_signal
        self._lost = False
        self._token = ""
        self._proven = asyncio.Event()
        self._ended = asyncio.Event()
        self.first_try: Final = asyncio.Event()

    async def run(self) -> None:
        place = self._place.apart()
        while True:
            cause = "the connection ended"
            try:
                connection = await place.connect(role="listen", limit=_PROBE_WITHIN)
                try:
                    await self._listen(connection)
                except BaseException:
                    connection.terminate()
                    raise
                await connection.close(timeout=1)
            except DriverUnavailable as away:
                cause = away.cause
            except Exception as failure:
                if not is_away(failure):
                    raise
                cause = str(failure) or type(failure).__name__
            self._lose(cause)
            place.gate.failed()

    async def _listen(self, connection: Connection[Record]) -> None:
        """Listens until the connection ends; raises what a probe meets when it only looks alive."""
        self._ended.clear()
        self._proven.clear()
        self._token = uuid4().hex
        connection.add_termination_listener(self._terminated)
        await connection.add_listener(self._sql.channel, self._received)
        # A pooler that shares its server connections accepts LISTEN and delivers nothing.
        await connection.fetch(self._sql(PROVE), self._token, timeout=_PROBE_WITHIN)
        async with asyncio.timeout(_PROBE_WITHIN):
            await self._proven.wait()
        self._regain()
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_EVERY):
                    await self._ended.wait()
            if not self._ended.is_set():
                await connection.fetchval(PROBE, timeout=_PROBE_WITHIN)

    def _terminated(self, _: Any) -> None:
        self._ended.set()

    def _received(self, _: Any, __: int, ___: str, payload: object) -> None:
        kind, _sep, value = str(payload).partition(":")
        if kind == _PROBE:
            if value == self._token:
                self._proven.set()
        elif kind in _KINDS:
            self._on_signal(Signal(_KINDS[kind], value))

    def _lose(self, cause: str) -> None:
        self.first_try.set()
        if not self._lost:
            self._lost = True
            self._on_signal(Signal(SignalKind.LOST, cause))

    def _regain(self) -> None:
        self.first_try.set()
        if self._lost:
            self._lost = False
            self._on_signal(Signal(SignalKind.BACK))
