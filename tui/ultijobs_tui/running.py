"""Acts that only the application's own code can say: which jobs a task asks for. Given by whoever has the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ultijobs.inspection import Enqueued

__all__ = ["TaskRunner"]


class TaskRunner(Protocol):
    async def foresee(self, task: str) -> Mapping[str, int]:
        """How many jobs it would ask for, by queue; enqueues none. Raises `DeclarationUnknown`."""
        ...

    async def enqueue(self, task: str) -> Sequence[Enqueued]:
        """Runs the task now, outside of its schedule."""
        ...

    async def close(self) -> None:
        """Ends what was opened to run tasks."""
        ...
