"""A clock that stands still until the test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, Final

from ultijobs._durations import Duration, parse
from ultijobs.errors import Invariant

__all__ = ["FrozenClock"]

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class FrozenClock:
    """Time for a queue in memory. It begins at `start`, an aware time; else with the year 2026, in UTC."""

    def __init__(self, start: datetime = _START) -> None:
        self._start: Final = _aware(start, "FrozenClock: start")
        self._now = self._start
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return f"<FrozenClock {self._now.isoformat()}>"

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since it began."""
        return (self._now - self._start).total_seconds()

    def advance(self, duration: Duration) -> datetime:
        """Moves on by `duration`; answers the time that it is then."""
        step = parse(duration, what="FrozenClock.advance")
        with self._lock:
            self._now += step
            return self._now

    def move_to(self, time: datetime) -> datetime:
        """Moves on to `time`, an aware one. Raises `Invariant` for one that is past."""
        to = _aware(time, "FrozenClock.move_to: time")
        with self._lock:
            if to < self._now:
                raise Invariant(
                    f"FrozenClock.move_to: {to.isoformat()} is before {self._now.isoformat()}",
                    fix="begin with an earlier one: FrozenClock(start)",
                )
            self._now = to
            return self._now


def _aware(time: Any, what: str) -> datetime:
    if not isinstance(time, datetime) or time.utcoffset() is None:
        raise Invariant(f"{what} is {time!r:.100}, no aware datetime", fix="write datetime(2026, 1, 1, tzinfo=UTC)")
    return time.astimezone(UTC)
