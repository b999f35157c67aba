"""The times that hold in a schema: of each kind the longest that an application declares which is still about."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, Final

from ultijobs._durations import LONGEST, milliseconds
from ultijobs._queue.retention import Windows
from ultijobs._queue.telling import CatalogEntry

__all__ = ["declared", "windows_in"]

SEEN_WITHIN: Final = timedelta(days=7)
"""A declaration that no process has confirmed for longer holds nothing back."""


def declared(windows: Windows) -> dict[str, int]:
    """The times as the catalogue has them, in milliseconds."""
    return {f"{name}_ms": milliseconds(window) for name, window in asdict(windows).items()}


def windows_in(
    catalogue: Iterable[CatalogEntry], own: Windows | None, names: Collection[tuple[str, str]], now: datetime
) -> Windows | None:
    """The longest of `own` and of what the catalogue says of others; `names` (kind, name) are those that are our own.

    None when nobody says anything.
    """
    longest = own
    for entry in catalogue:
        if (entry.kind, entry.name) in names or entry.last_seen is None or entry.last_seen < now - SEEN_WITHIN:
            continue
        found = _read(entry.declaration.get("retention"))
        if found is not None:
            longest = found if longest is None else longest.or_longer(found)
    return longest


def _read(told: Any) -> Windows | None:
    """What a release wrote; None for anything else, so that a row which SQL changed cannot make data go early."""
    try:
        found = {each.name: timedelta(milliseconds=int(told[f"{each.name}_ms"])) for each in fields(Windows)}
        return Windows(**found) if all(timedelta(0) < time <= LONGEST for time in found.values()) else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
