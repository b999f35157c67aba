"""Delivers events that were committed in transactions of their publishers: at once when told, else at the next poll."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

from ultijobs._queue.driver import Driver
from ultijobs._service.trouble import Trouble

__all__ = ["Deliverer"]


class Deliverer:
    """Wakes the runs that wait for such events; `woken` is told how many, when there were any."""

    def __init__(self, driver: Driver, *, poll: timedelta, trouble: Trouble, woken: Callable[[int], None]) -> None:
        self._driver = driver
        self._poll = poll.total_seconds()
        self._trouble = trouble
        self._woken = woken
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Events may have been committed."""
        self._hinted.set()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._poll * random.uniform(1.0, 1.2)):  # noqa: S311 - keeps processes apart
                    await self._hinted.wait()
            except TimeoutError:
                pass
            self._hinted.clear()
            try:
                await self.once()
            except Exception as error:  # noqa: BLE001 - the next poll tries again
                self._trouble.failed("jobs.worker.tick-failed", "delivering events", error)

    async def once(self) -> int:
        """How many runs became due."""
        woken = await self._driver.events.deliver()
        if woken:
            self._woken(woken)
        return woken
