"""Waits for a database that is away, and for anything else only until the stop is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ultijobs._coalesce import Backoff
from ultijobs._service.stop import Stop, StopRequest, end
from ultijobs._service.trouble import Trouble
from ultijobs.errors import DriverUnavailable

__all__ = ["Patience"]

_TRIES: Final = Backoff(first=0.2, most=2.0)


class Patience:
    """One role's: what it waits for while it starts, as long as no stop is asked for."""

    def __init__(self, stop: StopRequest, trouble: Trouble) -> None:
        self._stop = stop
        self._trouble = trouble

    async def answered(self, doing: str, call: Callable[[], Awaitable[None]]) -> bool:
        """Calls until the database answers; False when the stop came first."""
        failures = 0
        while self._stop.stage is Stop.NO:
            try:
                if not await self.unless_stopped(call()):
                    return False
            except DriverUnavailable as error:
                failures += 1
                self._trouble.failed("jobs.database.away", doing, error)
                await self.unless_stopped(asyncio.sleep(_TRIES.after(failures)))
            else:
                self._trouble.answered()
                return True
        return False

    async def unless_stopped(self, work: Awaitable[None]) -> bool:
        """Awaits `work`, or cancels it when a stop is asked for; True when it has ended by itself."""
        task = asyncio.ensure_future(work)
        asked = asyncio.create_task(self._stop.at_least(Stop.DRAIN))
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            return False
        finally:
            await end({task, asked})
