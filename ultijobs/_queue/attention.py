"""What in the store needs a worker's hand besides claiming."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Attention"]


@dataclass(frozen=True, slots=True)
class Attention:
    """`lapsed`: `Driver.reap` has something to do. `events`: `EventStore.deliver` has."""

    lapsed: bool
    events: bool
