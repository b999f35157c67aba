"""Ages, counts, ids and times as a person reads them in a table; what the screens share comes from inspection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ultijobs.inspection import wording
from ultijobs.inspection.wording import NEVER as NONE
from ultijobs.inspection.wording import attempts, count, slots
from ultijobs.inspection.wording import due as until
from ultijobs.inspection.wording import short_id as tail

__all__ = [
    "NONE",
    "age",
    "amount",
    "attempts",
    "count",
    "duration",
    "failure",
    "moment",
    "plural",
    "since",
    "slots",
    "tail",
    "text",
    "until",
]


def duration(value: timedelta | None) -> str:
    """`4s 59s 1m02s 14m 3h10m 2d4h`; what is negative reads `0s`."""
    return NONE if value is None else wording.age(int(value.total_seconds()) * 1000)


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


def moment(value: datetime | None) -> str:
    return NONE if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def amount(value: float) -> str:
    """A number that a job told of itself: `1,250,000`, `0.50`."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def plural(number: int | str, one: str, many: str | None = None) -> str:
    """`1 job`, `3 jobs`, `10,000+ jobs`."""
    word = one if number in (1, "1") else (many or f"{one}s")
    return f"{number:,} {word}" if isinstance(number, int) else f"{number} {word}"
