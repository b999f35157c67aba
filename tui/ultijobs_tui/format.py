"""How spans, times and rows of bars are written on screens, beside what all surfaces share. No clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ultijobs.inspection import Count
from ultijobs.inspection.wording import NEVER, age, attempts, count, due, exact_age, ms_between, short, short_id, slots

__all__ = [
    "EPOCH",
    "NEVER",
    "age",
    "age_between",
    "attempts",
    "clock",
    "count",
    "due",
    "exact_age",
    "ms_between",
    "short",
    "short_count",
    "short_id",
    "size",
    "slots",
    "spark",
    "took",
]

_BARS: Final = "▁▂▃▄▅▆▇█"
EPOCH: Final = datetime.fromtimestamp(0, UTC)


def age_between(start: datetime | None, end: datetime, *, exact: bool = False) -> str:
    """The age at `end` of what began at `start`."""
    ms = None if start is None else ms_between(start, end)
    return exact_age(ms) if exact else age(ms)


def took(ms: float | None) -> str:
    """How long something ran: `12ms 1.4s 10.0s 3m20s`."""
    if ms is None:
        return NEVER
    ms = max(0.0, ms)
    if ms < 1000:
        return f"{ms:.0f}ms"
    return f"{ms / 1000:.1f}s" if ms < 60_000 else exact_age(ms)


def size(bytes: float) -> str:
    """An amount of memory in at most five letters: `812B 412M 1.2G`."""
    for power, unit in ((3, "G"), (2, "M"), (1, "k")):
        if bytes >= 1024**power:
            scaled = bytes / 1024**power
            return f"{scaled:.1f}{unit}" if scaled < 10 and power > 1 else f"{scaled:.0f}{unit}"
    return f"{max(0, bytes):.0f}B"


def short_count(value: Count) -> str:
    """`812 51.2k 10.0k+ ~2.1M`; as everywhere, a cut count of nothing is `?`."""
    if value.kind == "capped":
        return f"{short(value.value)}+" if value.value else str(value)
    return f"{'~' if value.kind == 'estimate' else ''}{short(value.value)}"


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
