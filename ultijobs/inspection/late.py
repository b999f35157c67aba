"""Tasks that are not dispatched: those that raise, and those whose occurrence nobody has decided about."""

from __future__ import annotations

from datetime import UTC, datetime

from ultijobs._queue.schedule import ScheduleStore, TaskState
from ultijobs._queue.views import Count
from ultijobs.inspection.models import Stuck, StuckKind
from ultijobs.inspection.schedule import late_since

__all__ = ["NO_LEADER", "late_tasks"]

NO_LEADER = "no scheduler leads"
_SHOWN_ERROR = 120


async def late_tasks(schedule: ScheduleStore, now: datetime) -> list[Stuck]:
    """One line per task."""
    return [_line(state, since) for state in await schedule.states() if (since := late_since(state, now)) is not None]


def _line(state: TaskState, since: datetime) -> Stuck:
    leader = state.leader
    led = leader is not None and leader.lease_until > leader.now
    if state.last_error is not None:
        why = state.last_error.partition("\n")[0][:_SHOWN_ERROR]
    else:
        why = "its scheduler has not decided it" if led else NO_LEADER
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
