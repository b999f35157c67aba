"""When the next row becomes due, as far as this process knows: asked for when something may have changed it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

__all__ = ["NextDue"]

AT_ONCE: Final = 0.002
"""An answer below this, in seconds, speaks of a row that is due and that nobody here may claim yet."""


class NextDue:
    """`at` is the monotonic time of the next due row, or None. `most` bounds the wait for one out of reach."""

    def __init__(self, ask: Callable[[], Awaitable[timedelta | None]], most: float) -> None:
        self._ask = ask
        self._most = most
        self._stale = True
        self._in_vain = 0
        self.at: float | None = None

    def changed(self) -> None:
        """A row may become due sooner than known."""
        self._stale = True

    def pass_by(self, now: float) -> None:
        """Forgets a time that has come."""
        if self.at is not None and self.at <= now:
            self.at = None
            self._stale = True

    def served(self) -> None:
        """A claim brought something: what was due was not out of reach."""
        self._in_vain = 0

    async def learn(self) -> None:
        """Asks again when something has changed. Raises what the driver raises."""
        if not self._stale:
            return
        self._stale = False
        wait = await self._ask()
        if wait is None:
            self.at = None
            return
        seconds = wait.total_seconds()
        if seconds < AT_ONCE:
            # Waits grow while it stays out of reach, so that it never becomes a hot loop.
            self._in_vain = min(self._in_vain + 1, 20)
            seconds = min(self._most, AT_ONCE * 2.0**self._in_vain)
        else:
            self._in_vain = 0
        self.at = time.monotonic() + seconds
