"""Retention: how long what has ended is kept, and its removal in bounded batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from ultijobs._queue.views import Count

__all__ = ["Forgotten", "Kept", "RetentionStore", "Shelf", "Windows"]


class Kept(StrEnum):
    """What is kept for a time of its own and counted by itself."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DEAD = "dead"
    EVENTS = "events"
    """Kept until each event's own expiry."""
    OUTBOX = "outbox"
    SCHEDULE = "schedule"
    ACTIVITY = "activity"


class Shelf(StrEnum):
    """Where what is kept stands; one is swept at a time."""

    HISTORY = "history"
    """Done and cancelled jobs, with the steps and attempts of their runs."""
    STOPPED = "stopped"
    """Dead and failed jobs, with the steps and attempts of their runs."""
    EVENTS = "events"
    OUTBOX = "outbox"
    """Published rows; what is staged or set aside stays."""
    SCHEDULE = "schedule"
    """Decided slots. Until they are forgotten none of them fires again."""
    ACTIVITY = "activity"


@dataclass(frozen=True, slots=True)
class Windows:
    """How long each kind is kept after its end."""

    done: timedelta
    cancelled: timedelta
    failed: timedelta
    dead: timedelta
    outbox: timedelta
    schedule: timedelta
    activity: timedelta

    def of(self, kind: Kept) -> timedelta | None:
        """The time of one kind; None where each row has its own."""
        found: timedelta | None = getattr(self, kind.value, None)
        return found

    def or_longer(self, other: Windows) -> Windows:
        """Of each time the longer one."""
        return Windows(**{each.name: max(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)})

    def shortest(self) -> timedelta:
        times: list[timedelta] = [getattr(self, each.name) for each in fields(self)]
        return min(times)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What one batch removed, and where the next goes on; `after` is None when there is nothing more to look at."""

    rows: Mapping[Kept, int] = field(default_factory=dict[Kept, int])
    after: str | None = None


class RetentionStore(Protocol):
    """Nothing is removed before its time. History may be kept up to a day longer, so that whole days can be dropped."""

    async def expired(self, windows: Windows, *, cap: int = 10_000) -> Mapping[Kept, Count]:
        """How much of each kind is over its time; locks nothing."""
        ...

    async def forget(self, shelf: Shelf, windows: Windows, *, after: str | None = None, limit: int = 500) -> Forgotten:
        """Removes one batch of what is over its time, and looks at a bounded number of rows.

        It waits for nobody: rows that somebody holds are left for another time. Jobs go together with the steps and
        attempts of their runs. Safe to call from several processes at once, and to stop anywhere.
        """
        ...
