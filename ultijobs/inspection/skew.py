"""By how much this machine's clock and the database's differ. All stored times are the database's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ultijobs._clock import SYSTEM_CLOCK, Clock
from ultijobs._queue.driver import InspectionStore
from ultijobs._queue.health import Health

__all__ = ["measured"]

_MS = timedelta(milliseconds=1)


async def measured(store: InspectionStore, clock: Clock = SYSTEM_CLOCK) -> Health:
    """The store's health with the skew filled in; a store in memory has no clock but the one it is given."""
    before = clock.now()
    health = await store.health()
    after = clock.now()
    if health.kind == "memory":
        return health
    ahead = max(before - health.as_of, timedelta(0)) or min(after - health.as_of, timedelta(0))
    return replace(health, clock_skew_ms=round(ahead / _MS))
