"""Which acts fit a job as it stands, and why another does not: what a plan would refuse is greyed before."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ultijobs.errors import JobMoved
from ultijobs.inspection import JobRow, JobState, Overview

__all__ = ["standing", "unfit_for", "unfit_for_queue", "unfit_for_state"]

_STOPPED: Final = frozenset({JobState.DEAD, JobState.FAILED, JobState.CANCELLED})
_LIVE: Final = frozenset({JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.SUSPENDED})


def standing(row: JobRow) -> str:
    """Its state; or that it is held for another database, or has gone there."""
    if row.error_code == JobMoved.code:
        return "moved to another database"
    return "held for another database" if row.behind == row.id else row.state


def unfit_for(act: str, standings: Collection[str]) -> str | None:
    """Why `retry` or `cancel` fits none of these; other acts fit all."""
    fitting = {"retry": _STOPPED, "cancel": _LIVE}.get(act)
    if fitting is None or not standings or fitting.intersection(standings):
        return None
    what = "only what has stopped can be retried" if act == "retry" else "only what lives can be cancelled"
    return f"{what}; this is {', '.join(sorted(standings))}"


def unfit_for_queue(act: str, queue: str | None, overview: Overview | None) -> str | None:
    """Why `pause` or `resume` does not fit a queue, as far as the last look at the queues tells."""
    if queue is None:
        return "this row is not about one queue: choose it on 2"
    known = next((q.state for q in overview.queues if q.queue == queue), None) if overview else None
    return None if overview is None else unfit_for_state(act, known)


def unfit_for_state(act: str, state: str | None) -> str | None:
    """The same for a queue in this state; None is one that nothing names yet."""
    if act == "pause" and state == "paused":
        return "this queue is paused already"
    return "this queue is not paused" if act == "resume" and state != "paused" else None
