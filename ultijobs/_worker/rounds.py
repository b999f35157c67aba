"""One look at every poll at what needs a hand: lapsed leases are ended, committed events delivered."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Final

from ultijobs._queue.driver import Driver
from ultijobs._service.trouble import Trouble
from ultijobs._worker.deliverer import Deliverer
from ultijobs._worker.reaper import Reaper

__all__ = ["Rounds"]

_DOING: Final = "ending lapsed leases and delivering events"


class Rounds:
    """Idle, it costs one statement a poll; a hint of events is followed at once."""

    def __init__(
        self, driver: Driver, reaper: Reaper, deliverer: Deliverer, *, poll: timedelta, trouble: Trouble
    ) -> None:
        self._driver = driver
        self._reaper = reaper
        self._deliverer = deliverer
        self._poll = poll.total_seconds()
        self._trouble = trouble
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Events may have been committed."""
        self._hinted.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        look_at = self._next(loop)
        while True:
            try:
                async with asyncio.timeout_at(look_at):
                    await self._hinted.wait()
            except TimeoutError:
                pass
            try:
                if self._hinted.is_set():
                    self._hinted.clear()
                    await self._deliverer.once()
                if loop.time() >= look_at:
                    await self.once()
            except Exception as error:  # noqa: BLE001 - the next poll tries again
                self._trouble.failed("jobs.worker.tick-failed", _DOING, error)
            if loop.time() >= look_at:
                look_at = self._next(loop)

    async def once(self) -> None:
        """Looks, and does what there is to do."""
        needed = await self._driver.attention()
        if needed.lapsed:
            await self._reaper.once()
        if needed.events:
            await self._deliverer.once()
        self._trouble.worked(_DOING)

    def _next(self, loop: asyncio.AbstractEventLoop) -> float:
        return loop.time() + self._poll * random.uniform(1.0, 1.2)  # noqa: S311 - keeps processes apart
