"""Durable background jobs for Python on the Postgres you already have.

Names are loaded at their first use, so that a part of the library costs only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ultijobs._definitions.actor import Actor
    from ultijobs._definitions.backfill import backfill
    from ultijobs._definitions.bounds import Limits, Rate, Retention, Sizes
    from ultijobs._definitions.event import Event
    from ultijobs._definitions.handle import JobHandle, Request
    from ultijobs._definitions.job import job
    from ultijobs._definitions.source import BatchSource
    from ultijobs._definitions.task import task
    from ultijobs._outbox.relay import Relay
    from ultijobs._queue.records import Enqueued, JobState
    from ultijobs._retry import RetryAfter, RetryPolicy, Terminal
    from ultijobs._scheduler.scheduler import Scheduler
    from ultijobs._steps.context import Context, current
    from ultijobs._steps.step import Step
    from ultijobs._steps.sync_step import SyncStep
    from ultijobs._steps.tenancy import cross_tenant
    from ultijobs._worker.worker import Worker
    from ultijobs.app import App
    from ultijobs.errors import UltijobsError

__all__ = [
    "Actor",
    "App",
    "BatchSource",
    "Context",
    "Enqueued",
    "Event",
    "JobHandle",
    "JobState",
    "Limits",
    "Rate",
    "Relay",
    "Request",
    "Retention",
    "RetryAfter",
    "RetryPolicy",
    "Scheduler",
    "Sizes",
    "Step",
    "SyncStep",
    "Terminal",
    "UltijobsError",
    "Worker",
    "backfill",
    "cross_tenant",
    "current",
    "job",
    "task",
]

_HOMES: Final = {
    "ultijobs._definitions.actor": ("Actor",),
    "ultijobs._definitions.backfill": ("backfill",),
    "ultijobs._definitions.bounds": ("Limits", "Rate", "Retention", "Sizes"),
    "ultijobs._definitions.event": ("Event",),
    "ultijobs._definitions.handle": ("JobHandle", "Request"),
    "ultijobs._definitions.job": ("job",),
    "ultijobs._definitions.source": ("BatchSource",),
    "ultijobs._definitions.task": ("task",),
    "ultijobs._outbox.relay": ("Relay",),
    "ultijobs._queue.records": ("Enqueued", "JobState"),
    "ultijobs._retry": ("RetryAfter", "RetryPolicy", "Terminal"),
    "ultijobs._scheduler.scheduler": ("Scheduler",),
    "ultijobs._steps.context": ("Context", "current"),
    "ultijobs._steps.step": ("Step",),
    "ultijobs._steps.sync_step": ("SyncStep",),
    "ultijobs._steps.tenancy": ("cross_tenant",),
    "ultijobs._worker.worker": ("Worker",),
    "ultijobs.app": ("App",),
    "ultijobs.errors": ("UltijobsError",),
}
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
