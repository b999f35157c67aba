"""Ages, counts, ids and times as a person reads them: short, of stable width, never negative."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from ultijobs.inspection import Count

__all__ = ["NONE", "age", "count", "duration", "failure", "moment", "plural", "since", "tail", "text", "until"]

NONE: Final = "\u2013"
"""What stands where there is nothing."""
_MILLION: Final = 1_000_000
_ESTIMATES: Final = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))


def duration(value: timedelta | None) -> str:
    """`4s 59s 1m02s 14m 3h10m 2d4h`; what is negative reads `0s`."""
    if value is None:
        return NONE
    total = max(0, int(value.total_seconds()))
    minutes, seconds = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    if minutes >= 10:  # noqa: PLR2004 - from here on seconds are noise
        return f"{minutes}m"
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"


def text(value: str | None) -> str:
    """What there is, or the sign for nothing."""
    return value or NONE


def age(milliseconds: int | None) -> str:
    return NONE if milliseconds is None else duration(timedelta(milliseconds=milliseconds))


def failure(code: str | None, error: str | None) -> str:
    """What went wrong in one line: the code, unless the text begins with it."""
    if code is None or (error or "").startswith(code):
        return error or NONE
    return f"{code}: {error}" if error else code


def since(then: datetime | None, now: datetime) -> str:
    return NONE if then is None else duration(now - then)


def until(then: datetime, now: datetime) -> str:
    """`in 5m`, or `now` when the time has come."""
    return "now" if then <= now else f"in {duration(then - now)}"


def count(value: Count) -> str:
    """`812`, `10,000+`, `~2.1M`."""
    if value.kind == "estimate":
        for unit, sign in _ESTIMATES:
            if value.value >= (unit if unit >= _MILLION else 10 * unit):
                return f"~{value.value / unit:.1f}".removesuffix(".0") + sign
    return str(value)


def tail(id: UUID | None) -> str:
    """An id as screens show it: the last 8 hex digits, which commands take."""
    return NONE if id is None else f"…{id.hex[-8:]}"


def moment(value: datetime | None) -> str:
    return NONE if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def plural(number: int | str, one: str, many: str | None = None) -> str:
    """`1 job`, `3 jobs`, `10,000+ jobs`."""
    word = one if number in (1, "1") else (many or f"{one}s")
    return f"{number:,} {word}" if isinstance(number, int) else f"{number} {word}"
