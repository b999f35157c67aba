"""How ages, counts, ids and times are written, the same on every screen. Pure text; no clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from ultijobs.inspection import Count

__all__ = [
    "EPOCH",
    "NEVER",
    "age",
    "age_between",
    "clock",
    "count",
    "due",
    "exact_age",
    "short",
    "short_count",
    "short_id",
    "size",
    "spark",
    "took",
]

_BARS: Final = "▁▂▃▄▅▆▇█"
NEVER: Final = "–"
EPOCH: Final = datetime.fromtimestamp(0, UTC)


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


def age_between(start: datetime | None, end: datetime, *, exact: bool = False) -> str:
    """The age at `end` of what began at `start`."""
    ms = None if start is None else ms_between(start, end)
    return exact_age(ms) if exact else age(ms)


def due(at: datetime | None, now: datetime) -> str:
    """`now` for what is due, `in 5m` for what comes."""
    if at is None:
        return NEVER
    ahead = ms_between(now, at)
    return "now" if ahead <= 0 else f"in {age(ahead)}"


def took(ms: float | None) -> str:
    """How long something ran: `12ms 1.4s 10.0s 3m20s`."""
    if ms is None:
        return NEVER
    ms = max(0.0, ms)
    if ms < 1000:
        return f"{ms:.0f}ms"
    return f"{ms / 1000:.1f}s" if ms < 60_000 else exact_age(ms)


def short(n: int) -> str:
    """A number in at most five letters: `812 9,999 51.2k 2.1M`."""
    if n < 10_000:
        return f"{n:,}"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if n >= size:
            scaled = n / size
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    raise AssertionError(n)


def size(bytes: float) -> str:
    """An amount of memory in at most five letters: `812B 412M 1.2G`."""
    for power, unit in ((3, "G"), (2, "M"), (1, "k")):
        if bytes >= 1024**power:
            scaled = bytes / 1024**power
            return f"{scaled:.1f}{unit}" if scaled < 10 and power > 1 else f"{scaled:.0f}{unit}"
    return f"{max(0, bytes):.0f}B"


def count(value: Count) -> str:
    """`812`, `10,000+`, `~2.1M`."""
    return f"~{short(value.value)}" if value.kind == "estimate" else str(value)


def short_count(value: Count) -> str:
    mark = {"capped": "+", "estimate": "", "exact": ""}[value.kind]
    lead = "~" if value.kind == "estimate" else ""
    return f"{lead}{short(value.value)}{mark}"


def short_id(id: UUID | None) -> str:
    """The tail of an id: the head of a UUIDv7 is the same for hours."""
    return NEVER if id is None else f"…{id.hex[-8:]}"


def clock(at: datetime | None, *, now: datetime | None = None) -> str:
    """The time of day in UTC; with its date when it is not the day of `now`."""
    if at is None:
        return NEVER
    if now is not None and at.date() != now.date():
        return f"{at:%m-%d %H:%M}"
    return f"{at:%H:%M:%S}"


def spark(values: Sequence[float], width: int) -> str:
    """The last `width` values as bars, from zero to their own highest."""
    shown = list(values)[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return "▁" * len(shown)
    return "".join(_BARS[min(7, max(0, round(v / top * 7)))] for v in shown)
