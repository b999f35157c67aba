"""The jobs of one slot: what the task asks for, made rows on the way that every enqueue goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ultijobs._definitions.bounds import Limits
from ultijobs._definitions.handle import Request
from ultijobs._definitions.registry import Registry
from ultijobs._definitions.task import TaskHandle
from ultijobs._durations import parse
from ultijobs._enqueue.rows import row, wishes
from ultijobs._queue.records import NewJob
from ultijobs.errors import Invariant

__all__ = ["jobs_of"]


def jobs_of(
    task: TaskHandle,
    occurrence: datetime,
    requests: Sequence[Request[Any]],
    registry: Registry,
    *,
    limit: int,
    limits: Limits,
    code_version: str | None,
) -> tuple[NewJob, ...]:
    """Rows whose keys begin with the task and the slot, due at the occurrence unless a request says another time.

    Raises what an enqueue raises for an input that does not fit or cannot be stored.
    """
    slot = occurrence.astimezone(UTC)
    prefix = f"{task.name}:{slot.isoformat().replace('+00:00', 'Z')}:"
    asked = wishes(f"task {task.name}", {"run_at": slot})
    jobs: list[NewJob] = []
    for request in requests:
        if not registry.holds(request.handle):
            raise Invariant(
                f"task {task.name} asks for {request.handle!r}, which is not registered with its application",
                fix="list it in App(jobs=[…])",
            )
        if request.delay is not None:
            delay = parse(request.delay, what=f"task {task.name}: delay of {request.handle.name}")
            request = replace(request, delay=None, run_at=slot + delay)  # noqa: PLW2901 - the same request, absolute
        job = row(request.handle, request, asked, limit=limit, limits=limits, code_version=code_version)
        key = f"{prefix}{job.idempotency_key}"
        jobs.append(replace(job, idempotency_key=key, enqueued_by=f"task:{task.name}"))
    return tuple(jobs)
