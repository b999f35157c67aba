"""The pace of a backfill: pages begin at least so far apart, whatever each of them takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["Pacer"]

SKIPPED: Final = 0.001
"""A wait that is shorter, in seconds, is left out."""


class Pacer:
    """One per declaration and process, so that an attempt which follows another keeps the pace; the first page is free.

    A wait ends at once when its task is cancelled.
    """

    __slots__ = ("_gap", "_next", "_now", "_sleep")

    def __init__(
        self,
        rate: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._gap: Final = 1.0 / rate
        self._now: Final = now
        self._sleep: Final = sleep
        self._next: float | None = None

    async def turn(self) -> None:
        """Returns when the next page may begin."""
        due = self._now() if self._next is None else self._next
        wait = due - self._now()
        if wait >= SKIPPED:
            await self._sleep(wait)
        self._next = max(self._now(), due) + self._gap
