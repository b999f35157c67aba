"""Acts on the staged outbox: rows that were set aside are staged again, and the activity table keeps who did it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ultijobs._queue.driver import Driver
from ultijobs._queue.views import ActivityEntry
from ultijobs.inspection.applying import Actor
from ultijobs.inspection.models import ActOutcome
from ultijobs.inspection.refusals import refusal_of

__all__ = ["retry_staged"]


async def retry_staged(driver: Driver, ids: Sequence[UUID], actor: Actor, reason: str | None) -> ActOutcome:
    """One transaction. `matched` counts the rows that were set aside with those of `ids`, too."""
    words = " ".join(map(str, ids))
    entry = ActivityEntry(
        actor=actor.name,
        source=actor.source,
        action="outbox-retry",
        target=words,
        reason=reason,
        matched=len(ids),
        equivalent=f"ultijobs outbox retry {words}",
    )
    activity = await driver.open_activity(entry)
    results = await driver.outbox.retry(ids)
    done = tuple(result.id for result in results if result.done)
    refused = tuple(refusal_of(result) for result in results if not result.done)
    await driver.close_activity(activity, matched=len(results), done=len(done), refused=len(refused), failed=0)
    return ActOutcome(matched=len(results), done=done, refused=refused, failed=(), activity_id=activity)
