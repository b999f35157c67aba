"""What a wait receives, and the rules for what is published."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from ultijobs import _json
from ultijobs._definitions import checks
from ultijobs._durations import Duration, parse
from ultijobs._ids import new_id
from ultijobs._queue.events import NewEvent
from ultijobs.errors import Invariant

__all__ = ["Event", "event_key", "new_event"]

T_co = TypeVar("T_co", covariant=True)

# PostgreSQL keeps name and key in one index entry, which has to fit in a third of a page.
LONGEST_KEY: Final = 1_500


@dataclass(frozen=True, slots=True)
class Event(Generic[T_co]):
    """A published event. A null payload is an `Event` whose `payload` is None."""

    id: UUID
    name: str
    key: str | None
    payload: T_co
    published_at: datetime


def event_key(value: Any, what: str) -> str:
    """A key as events have it and waits match it: 1 to 1,500 bytes that a database stores."""
    if not isinstance(value, str) or not value or len(value.encode(errors="replace")) > LONGEST_KEY:
        raise Invariant(
            f"{what} is {value!r:.100}; it must be a text of 1 to {LONGEST_KEY} bytes",
            fix="leave it out, or pass a text such as an id",
        )
    _json.refuse_unstorable(value, what=what.rpartition(": ")[2])
    return value


def new_event(
    name: str,
    payload: object,
    key: str | None,
    ttl: Duration,
    *,
    limit: int,
    call: str = "publish",
    published_by: str | None = None,
) -> NewEvent:
    """The event to store; `payload` is plain JSON values.

    Raises `Invariant` for a name or key that is none, `PayloadInvalid` with a path for what cannot be stored or has
    more than `limit` bytes, `DurationInvalid` for a ttl that is no time.
    """
    return NewEvent(
        id=new_id(),
        name=checks.name(name, f"{call}: event"),
        payload=_json.encode(payload, what=f"{call}: the payload", limit=limit),
        key=None if key is None else event_key(key, f"{call}: key"),
        ttl=parse(ttl, what=f"{call}: ttl", positive=True),
        published_by=published_by,
    )
