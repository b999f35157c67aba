"""How ages, counts and ids are written, the same on every surface: short, of stable width, never negative."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._queue.records import JobState
from ultijobs._queue.views import Count, JobRow

__all__ = ["NEVER", "age", "attempts", "count", "due", "exact_age", "ms_between", "short", "short_id", "slots"]

NEVER: Final = "–"
"""What stands where there is nothing."""


def age(ms: float | None) -> str:
    """A span in at most five letters: `0.4s 41s 1m02s 14m 3h10m 2d4h`. Negative spans are `0s`, unknown ones `–`."""
    if ms is None:
        return NEVER
    seconds = max(0, int(ms // 1000))
    if 600 <= seconds < 3600:
        return f"{seconds // 60}m"
    return exact_age(ms)


def exact_age(ms: float | None) -> str:
    """As `age`, with the seconds kept below an hour: `14m02s`."""
    if ms is None:
        return NEVER
    if 0 < ms < 1000:
        return f"{max(0.1, ms // 100 / 10):.1f}s"
    seconds = max(0, int(ms // 1000))
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if hours and days < 100 else f"{days}d"


def ms_between(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000


def due(at: datetime | None, now: datetime) -> str:
    """`now` for what is due, `in 5m` for what comes."""
    if at is None:
        return NEVER
    ahead = ms_between(now, at)
    return "now" if ahead <= 0 else f"in {age(ahead)}"


def attempts(row: JobRow) -> str:
    """`2/5`: the attempt that it is in, or ended with. A wait gives its attempt back, and goes on in it."""
    within = row.attempt + 1 if row.state == JobState.SUSPENDED else row.attempt
    return f"{within}/{row.max_attempts}"


def slots(running: int, capacity: int) -> str:
    """`17/20`; jobs beyond the slots stand apart, `16/16 +1`: they have just ended, or their worker is gone."""
    beyond = max(0, running - capacity)
    return f"{running - beyond:,}/{capacity:,}{f' +{beyond:,}' if beyond else ''}"


def short(n: int) -> str:
    """A number in at most five letters: `812 9,999 51.2k 2.1M`."""
    if n < 10_000:
        return f"{n:,}"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if n >= size:
            scaled = n / size
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    raise AssertionError(n)


def count(value: Count) -> str:
    """`812`, `10,000+`, `~2.1M`."""
    return f"~{short(value.value)}" if value.kind == "estimate" else str(value)


def short_id(id: UUID | None) -> str:
    """The tail of an id: the head of a UUIDv7 is the same for hours."""
    return NEVER if id is None else f"…{id.hex[-8:]}"
