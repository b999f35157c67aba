"""Delivers events that were committed in transactions of their publishers."""

from __future__ import annotations

from collections.abc import Callable

from ultijobs._queue.driver import Driver

__all__ = ["Deliverer"]


class Deliverer:
    """Wakes the runs that wait for such events; `woken` is told how many, when there were any."""

    def __init__(self, driver: Driver, *, woken: Callable[[int], None]) -> None:
        self._driver = driver
        self._woken = woken

    async def once(self) -> int:
        """How many runs became due."""
        woken = await self._driver.events.deliver()
        if woken:
            self._woken(woken)
        return woken
