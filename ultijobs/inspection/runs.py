"""How the latest runs of a task went: each slot of its ledger with what became of the jobs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ultijobs._queue.records import LIVE
from ultijobs._queue.schedule import Run, ScheduleStore, SlotOutcome

__all__ = ["RunResult", "TaskRun", "latest_runs"]

SHOWN = 15
_TASKS = 100


class RunResult(StrEnum):
    """How a slot stands: the worst of its jobs decides."""

    DONE = "done"
    RUNNING = "running"
    """One of its jobs waits or runs."""
    DEAD = "dead"
    """One of its jobs stopped short: it is dead, or failed."""
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    UNKNOWN = "unknown"
    """Its jobs have been removed since."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """How the jobs of one slot ended."""

    occurrence: datetime
    result: RunResult
    took_ms: int | None
    """From the begin of the first attempt that is known of to the last end; None until all of its jobs have ended."""
    error_code: str | None


async def latest_runs(schedule: ScheduleStore, tasks: Sequence[str]) -> dict[str, tuple[TaskRun, ...]]:
    """By task, of at most 100 of them, its fifteen newest slots, the latest first."""
    found: dict[str, list[TaskRun]] = {}
    for run in await schedule.runs(tasks[:_TASKS], each=SHOWN) if tasks else ():
        found.setdefault(run.task, []).append(_told(run))
    return {task: tuple(runs) for task, runs in found.items()}


def _told(run: Run) -> TaskRun:
    result = _result(run)
    ended = result in {RunResult.DONE, RunResult.DEAD, RunResult.CANCELLED}
    took = int((run.ended - run.began).total_seconds() * 1000) if ended and run.began and run.ended else None
    return TaskRun(run.occurrence, result, None if took is None else max(0, took), run.error_code)


def _result(run: Run) -> RunResult:
    states = set(run.states)
    if run.outcome in {SlotOutcome.SKIPPED, SlotOutcome.MISSED}:
        return RunResult(run.outcome)
    if states & {"dead", "failed"}:
        return RunResult.DEAD
    if states & LIVE:
        return RunResult.RUNNING
    if "cancelled" in states:
        return RunResult.CANCELLED
    return RunResult.DONE if states or not run.jobs else RunResult.UNKNOWN
