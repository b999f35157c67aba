"""Tasks that are not dispatched: those that raise, and those whose occurrence nobody has decided about."""

from __future__ import annotations

from datetime import UTC, datetime

from ultijobs._queue.schedule import Leader, ScheduleStore, TaskState
from ultijobs._queue.views import Count
from ultijobs.inspection.models import Stuck, StuckKind
from ultijobs.inspection.schedule import late_since

__all__ = ["late_tasks"]

_SHOWN_ERROR = 120


async def late_tasks(schedule: ScheduleStore, now: datetime) -> list[Stuck]:
    """One line per task. Who leads is asked only when something is late."""
    found = [(state, since) for state in await schedule.states() if (since := late_since(state, now)) is not None]
    if not found:
        return []
    leader = await schedule.leader()
    return [_line(state, since, leader) for state, since in found]


def _line(state: TaskState, since: datetime, leader: Leader | None) -> Stuck:
    led = leader is not None and leader.lease_until > leader.now
    if state.last_error is not None:
        why = state.last_error.partition("\n")[0][:_SHOWN_ERROR]
    else:
        why = "the leader does not declare it" if led else "no scheduler leads"
    return Stuck(
        key=f"task:{state.task}",
        kind=StuckKind.CRON,
        severity=1,
        count=Count(1),
        why=f"{state.task} missed {since.astimezone(UTC):%H:%M} · {why}",
        since=since,
        last=None,
        held_by=leader.holder if leader is not None and led else None,
        where=None,
    )
