"""The scheduler's life."""

from __future__ import annotations

from typing import Protocol

from ultijobs._definitions.registry import Registry
from ultijobs._durations import Duration, parse
from ultijobs.errors import NotImplementedYet

__all__ = ["Scheduler"]


class _Application(Protocol):
    @property
    def registry(self) -> Registry: ...


class Scheduler:
    """Asks for the jobs of the tasks that are due, every `interval`; one process leads for `lease` at a time."""

    def __init__(self, app: _Application, *, interval: Duration = "1s", lease: Duration = "30s") -> None:
        self._app = app
        self._interval = parse(interval, what="Scheduler: interval", positive=True)
        self._lease = parse(lease, what="Scheduler: lease", positive=True)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        count = len(self._app.registry.tasks)
        raise NotImplementedYet(f"the scheduler of {count} tasks cannot run yet", fix="enqueue the jobs of the tasks")
