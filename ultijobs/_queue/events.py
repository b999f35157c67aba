"""The contract of events: what is published, what a waiting run asks, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

__all__ = ["EventPage", "EventRow", "EventStore", "Look", "NewEvent", "Seen", "Sight"]


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to publish. It is published at the store's own time, and expires `ttl` later."""

    id: UUID
    name: str
    payload: str
    """JSON text; it holds no U+0000 and no lone surrogate."""
    key: str | None = None
    ttl: timedelta = timedelta(days=7)
    published_by: str | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as stored, without its payload."""

    id: UUID
    name: str
    key: str | None
    published_at: datetime
    expires_at: datetime
    published_by: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events, newest first; `next` is the cursor of the page behind it, and None on the last one."""

    rows: list[EventRow]
    next: UUID | None
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """What a waiting step asks: is its event there, or its deadline over. Fenced by the claim `lease_no`.

    The step's record says which event, which key and until when. `since_run` looks back to the run's creation, else to
    the step's first visit. A step that is not `required` is completed without an event at its deadline.
    """

    job_id: UUID
    run_id: UUID
    lease_no: int
    step: str
    since_run: bool = True
    required: bool = False
    again: timedelta | None = None
    """Look again after this, where that is before the deadline."""


class Sight(StrEnum):
    """What a look has found."""

    EVENT = "event"
    OVER = "over"
    """The deadline has passed without an event."""
    NOTHING = "nothing"
    LOST = "lost"
    """The claim is no longer held; nothing was written."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The answer to a look. `output` is what the step's record has now: an object whose `payload` is the event's."""

    sight: Sight
    output: str | None = None
    wake_at: datetime | None = None
    """When to look again; the deadline, or earlier."""


class EventStore(Protocol):
    """Events and the runs that wait for them.

    A waiting run costs nothing: it is a row that the delivery of a matching event makes due. An event reaches each run
    that waits for it when its transaction has committed, wherever the run is at that moment, and each run once.
    """

    async def publish(self, events: Sequence[NewEvent], *, tx: object | None = None) -> int:
        """Stores all of them, in the caller's `tx` or at once; answers how many runs they made due by now.

        With `tx` that is 0: they are delivered after its commit, and never after a roll-back.
        """
        ...

    async def deliver(self) -> int:
        """Makes the runs due that wait for events which were committed and not delivered yet; answers how many.

        Cheap when there are none. Safe to call from every worker at once.
        """
        ...

    async def look(self, looks: Sequence[Look]) -> list[Seen]:
        """Completes each step with the earliest event that matches, has not expired and its run has not had yet.

        Repeating a look that has landed answers the same again.
        """
        ...

    async def page(
        self, *, name: str | None = None, key: str | None = None, after: UUID | None = None, limit: int = 100
    ) -> EventPage:
        """Events newest first; `after` is the `next` of the page before. Bounded; locks nothing."""
        ...
