"""A task that an operator runs by hand: its jobs, and a row in the activity table that says who asked for them."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence

from ultijobs._queue.driver import Driver
from ultijobs._queue.records import Enqueued
from ultijobs._queue.views import ActivityEntry
from ultijobs.inspection.applying import Actor

__all__ = ["run_task"]


async def run_task(
    driver: Driver, actor: Actor, name: str, ask: Callable[[], Awaitable[Sequence[Enqueued]]], *, reason: str | None
) -> list[Enqueued]:
    """Calls `ask`, which enqueues; the activity row is closed with what became of it, also when it raises."""
    entry = ActivityEntry(
        actor=actor.name,
        source=actor.source,
        action="run-task",
        target=f"task:{name}",
        reason=reason,
        matched=None,
        equivalent=shlex.join(["ultijobs", "tasks", "run", name]),
    )
    activity = await driver.open_activity(entry)
    try:
        answers = list(await ask())
    except Exception:
        await driver.close_activity(activity, matched=1, done=0, refused=0, failed=1)
        raise
    fresh = sum(not answer.deduped for answer in answers)
    await driver.close_activity(activity, matched=len(answers), done=fresh, refused=len(answers) - fresh, failed=0)
    return answers
