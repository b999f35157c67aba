"""Who holds a job, and what a row of Incident is about, as the places where that is shown."""

from __future__ import annotations

from ultijobs.inspection import Cause, JobRow, JobState, Stuck, StuckKind, WaitingOn
from ultijobs_tui.desk import Place
from ultijobs_tui.present.causes import cause_key
from ultijobs_tui.present.finding import exactly

__all__ = ["holder_of", "holder_of_stuck", "place_of"]

_BY_QUEUE = frozenset({WaitingOn.PAUSED, WaitingOn.NO_WORKER, WaitingOn.SLOT})

_SCREENS = {StuckKind.CRON: "tasks", StuckKind.OUTBOX: "outbox"}


def holder_of(row: JobRow) -> Place | str:
    """The worker that runs it, the queue that keeps it, the twin before it; or why nobody does."""
    if row.state == JobState.RUNNING and row.worker_id:
        return _worker(row.worker_id)
    if row.waiting_on is WaitingOn.BEHIND and row.behind is not None:
        return Place("run", job=row.behind)
    if row.waiting_on in _BY_QUEUE:
        return Place("queues", key=row.queue)
    if row.waiting_on is not None:
        return f"nobody holds it: it waits for {row.waiting_on}"
    return f"nobody holds it: it is {row.state}"


def holder_of_stuck(stuck: Stuck) -> Place | str:
    """The same for a row of Incident."""
    if stuck.kind is StuckKind.LEASE and stuck.held_by:
        return _worker(stuck.held_by)
    if stuck.queue is not None:
        return Place("queues", key=stuck.queue)
    return "nobody holds it: enter shows what it is"


def place_of(stuck: Stuck) -> Place | None:
    """Where a row of Incident is shown whole."""
    if stuck.cause is not None:
        jobs = next(iter(stuck.cause.jobs), None)
        return Place("backfills", key=jobs) if stuck.kind is StuckKind.BACKFILL else _dead(stuck.cause)
    if stuck.kind in _SCREENS:
        return Place(_SCREENS[stuck.kind], key=stuck.key.partition(":")[2])
    if stuck.kind is StuckKind.LEASE and stuck.held_by:
        return Place("leases", where=exactly("worker", stuck.held_by))
    if stuck.where:
        return Place("jobs", where=stuck.where)
    return Place("queues", key=stuck.queue) if stuck.queue else None


def _dead(cause: Cause) -> Place:
    return Place("dead", key=cause_key(cause))


def _worker(name: str) -> Place:
    return Place("workers", key=name)
