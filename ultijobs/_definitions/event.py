"""What a wait receives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

__all__ = ["Event"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Event(Generic[T_co]):
    """A published event. A null payload is an `Event` whose `payload` is None."""

    id: UUID
    name: str
    key: str | None
    payload: T_co
    published_at: datetime
