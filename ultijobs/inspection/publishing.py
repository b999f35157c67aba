"""An operator's publish: an event, and a row in the activity table that says who sent it."""

from __future__ import annotations

import shlex
from typing import Final

from ultijobs._definitions.event import new_event
from ultijobs._durations import Duration
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.driver import Driver
from ultijobs.inspection.applying import Actor
from ultijobs.inspection.models import Published

__all__ = ["publish"]

_LARGEST: Final = 1_048_576


async def publish(
    driver: Driver, actor: Actor, name: str, payload: object, *, key: str | None, ttl: Duration, reason: str | None
) -> Published:
    """Stores the event; an activity row without `finished_at` says that nobody knows whether it did."""
    event = new_event(name, payload, key, ttl, limit=_LARGEST, published_by=actor.name)
    keyed = [] if key is None else ["--key", key]
    entry = ActivityEntry(
        actor=actor.name,
        source=actor.source,
        action="publish",
        target=f"event:{name}",
        reason=reason,
        matched=1,
        # Without its payload: the activity table is shown to everybody who operates.
        equivalent=shlex.join(["ultijobs", "events", "publish", name, *keyed]),
        detail={"event_id": str(event.id), "key": key},
    )
    activity = await driver.open_activity(entry)
    woken = await driver.events.publish([event])
    await driver.close_activity(activity, matched=1, done=1, refused=0, failed=0)
    return Published(event.id, name, key, woken, activity)
