"""Cron texts: `cronsim`'s language under a thin rewriting of macros, `?`, full names and wrapping ranges."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from ultijobs.errors import CronInvalid, TimezoneInvalid

__all__ = ["meaning", "normalise", "zone"]

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = (
    "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER",
    "DECEMBER",
)  # fmt: skip
_DAYS: Final = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
# First value and size of each field, seconds first.
_CYCLES: Final = ((0, 60), (0, 60), (0, 24), (1, 31), (1, 12), (0, 7))
_MONTH: Final = 4
_DAY_OF_WEEK: Final = 5
_RANGE: Final = re.compile(r"([A-Z0-9]+)-([A-Z0-9]+)(?:/([0-9]+))?")
_NAME: Final = re.compile(r"[A-Z]{3,}")


def normalise(text: Any, what: str) -> str:
    """The text as `cronsim` reads it, with 5 fields or with 6 when it has seconds.

    Raises `CronInvalid` for what cannot be read, and for what never comes, such as the 30th of February.
    """
    if not isinstance(text, str):
        raise CronInvalid(f"{what} is {text!r:.100}, not text")
    fields = _MACROS.get(text.strip().lower(), text).upper().split()
    if len(fields) not in (5, 6):
        raise CronInvalid(f"{what} is {text!r:.200}: it has {len(fields)} fields")
    first = 6 - len(fields)
    try:
        rewritten = " ".join(_field(field, first + index) for index, field in enumerate(fields))
        next(CronSim(rewritten, datetime.now(UTC)))
    except StopIteration:
        raise CronInvalid(f"{what} is {text!r:.200}: no such date ever comes") from None
    except (CronSimError, ValueError, AssertionError, IndexError) as error:
        raise CronInvalid(f"{what} is {text!r:.200}: {error}") from error
    return rewritten


@lru_cache(maxsize=1_000)
def meaning(normalised: str) -> str:
    """A text that `normalise` answered, in words: `14:00 every day`, `Every fifth minute of every hour`."""
    return CronSim(normalised, datetime.now(UTC)).explain().removeprefix("At ")


def zone(name: Any, what: str) -> ZoneInfo:
    """The IANA zone of that name. Raises `TimezoneInvalid` for anything else, a fixed offset such as `+02:00` too."""
    if not isinstance(name, str) or name not in _zones():
        raise TimezoneInvalid(f"{what} is {name!r:.100}, no IANA time zone")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise TimezoneInvalid(f"{what} is {name!r:.100}, which cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - {"localtime", "posixrules", "Factory"})


def _field(field: str, index: int) -> str:
    if field.partition("/")[0] == "?":
        field = "*" + field[1:]
    if index == _MONTH:
        field = _NAME.sub(lambda found: _short(found[0], _MONTHS), field)
    elif index == _DAY_OF_WEEK:
        field = _NAME.sub(lambda found: _short(found[0], _DAYS), field)
    return ",".join(_unwrapped(term, index) for term in field.split(","))


def _short(word: str, names: tuple[str, ...]) -> str:
    return word[:3] if any(name.startswith(word) for name in names) else word


def _unwrapped(term: str, index: int) -> str:
    """A range that runs past the end of its field, such as FRI-MON, as the list of its values."""
    found = _RANGE.fullmatch(term)
    if found is None:
        return term
    low, size = _CYCLES[index]
    start, end = _value(found[1], index), _value(found[2], index)
    step = int(found[3] or 1)
    if start is None or end is None or step == 0 or start <= end:
        return term
    if index == _DAY_OF_WEEK and start == size:
        return f"0-{end}/{step}"  # Both 0 and 7 are Sunday.
    if not (low <= start < low + size and low <= end < low + size):
        return term
    span = range(start, end + size + 1, step)
    return ",".join(str(low + (value - low) % size) for value in span)


def _value(text: str, index: int) -> int | None:
    if text.isdecimal():
        return int(text)
    names = {_MONTH: _MONTHS, _DAY_OF_WEEK: _DAYS}.get(index, ())
    for position, name in enumerate(names):
        if name[:3] == text:
            return position + _CYCLES[index][0]
    return None
