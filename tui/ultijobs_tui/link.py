"""Whether the data can be trusted: live, frozen or lost, what failed, and when to try again."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from ultijobs.errors import UltijobsError

__all__ = ["FIX", "Link", "LinkState", "explain"]

FIX: Final = " · fix: "
_BASE: Final = 0.5
_MOST: Final = 30.0


class LinkState(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    FROZEN = "frozen"
    """By hand: nothing is asked of the database."""
    REPLAY = "replay"
    """What is shown is over; what is shown was kept in memory or in a file."""
    LOST = "lost"
    """The last refresh failed; what is shown is the last good data."""


class Link:
    """The state of the connection as the operator sees it. `jitter` returns a factor for each delay."""

    def __init__(self, monotonic: Callable[[], float], *, jitter: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic
        self._jitter = jitter or (lambda: random.uniform(0.7, 1.0))  # noqa: S311 - spreads retries, guards nothing
        self.frozen = False
        self.failures = 0
        self.error: BaseException | None = None
        self.lost_at: float | None = None
        self.good_at: float | None = None
        self.retry_at: float | None = None

    @property
    def state(self) -> LinkState:
        if self.error is not None:
            return LinkState.LOST
        if self.frozen:
            return LinkState.FROZEN
        return LinkState.LIVE if self.good_at is not None else LinkState.CONNECTING

    def ok(self) -> None:
        self.failures, self.error, self.lost_at, self.retry_at = 0, None, None, None
        self.good_at = self._monotonic()

    def failed(self, error: BaseException) -> float:
        """Notes a failed refresh; how many seconds to wait before the next, doubling up to 30."""
        now = self._monotonic()
        self.failures += 1
        self.error = error
        if self.lost_at is None:
            self.lost_at = now
        delay = min(_MOST, _BASE * 2.0 ** min(self.failures - 1, 10)) * self._jitter()
        self.retry_at = now + delay
        return delay

    def lost_for(self) -> float:
        return 0.0 if self.lost_at is None else self._monotonic() - self.lost_at

    def data_age(self) -> float | None:
        """Seconds since the last good refresh."""
        return None if self.good_at is None else self._monotonic() - self.good_at

    def retry_in(self) -> float:
        return 0.0 if self.retry_at is None else max(0.0, self.retry_at - self._monotonic())


def explain(error: BaseException) -> str:
    """One line for a person: what failed, in the words of the error."""
    if isinstance(error, UltijobsError):
        return f"{error}{FIX}{error.fix}"
    if isinstance(error, TimeoutError):
        return "no answer in time: the database is slow or out of reach"
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
