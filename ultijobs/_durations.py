"""Durations as people write them: a timedelta, seconds as a number, or a text such as "1h30m" or "PT30S"."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

from ultijobs.errors import DurationInvalid, Invariant, UltijobsError

__all__ = ["LONGEST", "Duration", "milliseconds", "parse", "render"]

Duration: TypeAlias = timedelta | str | int | float
"""A `timedelta`, a text such as `"30s"`, `"3d"`, `"1h30m"`, or a number of seconds."""

LONGEST: Final = timedelta(days=36_500)
"""The longest duration that is accepted: added to any present time it still is a date."""

_UNITS: Final = {
    "ms": 1,
    "s": 1_000,
    "sec": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "hr": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_GROUP: Final = re.compile(rf"\s*({_NUMBER})\s*([a-z]+)\s*")
_ISO: Final = re.compile(
    rf"P(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)
_ISO_UNITS: Final = ("w", "d", "h", "m", "s")


def parse(value: Duration, *, what: str, positive: bool = False) -> timedelta:
    """The duration that `value` says, in whole milliseconds; `what` names it in the error.

    Raises `DurationInvalid` for what cannot be read and for NaN, infinity and negatives. With `positive` zero is
    refused too, and a number outside of the range is `Invariant`: the value is readable, the setting is wrong.
    """
    if not _has_a_type_of_durations(value):
        raise DurationInvalid(f"{what} is {value!r:.100}, a {type(value).__name__}", meta={"what": what})
    if isinstance(value, str):
        amount: float = _read(value, what)
    elif isinstance(value, timedelta):
        amount = value / timedelta(milliseconds=1)
    else:
        # An int beyond float's range is as good as infinite.
        amount = math.inf if isinstance(value, int) and abs(value) > LONGEST.total_seconds() else value * 1_000.0
    longest = LONGEST / timedelta(milliseconds=1)
    if not (math.isfinite(amount) and 0 <= amount <= longest) or (positive and round(amount) == 0):
        raise _out_of_range(value, what, positive=positive)
    return timedelta(milliseconds=round(amount))


def milliseconds(value: timedelta) -> int:
    """Whole milliseconds, as columns and JSON carry them."""
    return value // timedelta(milliseconds=1)


def render(value: timedelta) -> str:
    """The shortest text that `parse` reads back as `value`: "1h30m", "250ms", "0s"."""
    rest = milliseconds(value)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _has_a_type_of_durations(value: object) -> bool:
    return isinstance(value, timedelta | str | int | float) and not isinstance(value, bool)


def _read(text: str, what: str) -> float:
    stripped = text.strip()
    if stripped.startswith("P"):
        return _read_iso(stripped, text, what)
    total = 0.0
    at = 0
    while at < len(stripped):
        group = _GROUP.match(stripped, at)
        if group is None or group[2] not in _UNITS:
            raise DurationInvalid(f"{what} is {text!r:.100}", meta={"what": what})
        total += float(group[1]) * _UNITS[group[2]]
        at = group.end()
    if at == 0:
        raise DurationInvalid(f"{what} is {text!r:.100}", meta={"what": what})
    return total


def _read_iso(stripped: str, text: str, what: str) -> float:
    found = _ISO.fullmatch(stripped)
    if found is None or stripped.endswith("T") or not any(found.groups()):
        raise DurationInvalid(f"{what} is {text!r:.100}", meta={"what": what})
    return sum(float(count) * _UNITS[unit] for count, unit in zip(found.groups(), _ISO_UNITS, strict=True) if count)


def _out_of_range(value: Duration, what: str, *, positive: bool) -> UltijobsError:
    shown = "a whole number beyond any date" if isinstance(value, int) and abs(value) > 10**15 else repr(value)
    rule = "more than zero" if positive else "zero or more"
    kind: type[UltijobsError] = Invariant if positive else DurationInvalid
    return kind(
        f"{what} is {shown}; it must be finite, {rule}, and at most {LONGEST.days} days",
        fix=f'set {what.rpartition(": ")[2]}= to a duration such as "30s"',
        meta={"what": what},
    )
