"""Who holds a job, and what a row of Incident is about, as the places where that is shown."""

from __future__ import annotations

from ultijobs.inspection import JobRow, JobState, Stuck, StuckKind, WaitingOn
from ultijobs_tui.desk import Place
from ultijobs_tui.present.causes import cause_key
from ultijobs_tui.present.finding import exactly

__all__ = ["holder_of", "holder_of_stuck", "place_of"]

_BY_QUEUE = frozenset({WaitingOn.PAUSED, WaitingOn.NO_WORKER, WaitingOn.SLOT})


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
        return Place("dead", key=cause_key(stuck.cause))
    if stuck.kind is StuckKind.CRON:
        return Place("tasks", key=stuck.key.removeprefix("task:"))
    if stuck.kind is StuckKind.LEASE and stuck.held_by:
        return Place("leases", where=exactly("worker", stuck.held_by))
    if stuck.where:
        return Place("jobs", where=stuck.where)
    return Place("queues", key=stuck.queue) if stuck.queue else None


def _worker(name: str) -> Place:
    return Place("workers", key=name)
