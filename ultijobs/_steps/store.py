"""Where an attempt reads and records its steps; the worker puts many attempts' records into one statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from ultijobs._queue.events import Look, Seen
from ultijobs._queue.steps import StepAnswer, StepRecord, StepWrite

__all__ = ["Firm", "StepStore"]

R = TypeVar("R")


class StepStore(Protocol):
    """The step records of all runs."""

    async def load(self, run_id: UUID, /) -> Sequence[StepRecord]: ...
    def record(self, write: StepWrite, done: Callable[[StepAnswer | BaseException], None], /) -> None:
        """Stores `write` durably, then calls `done` once on the loop with the answer or with what went wrong."""
        ...

    def look(self, look: Look, done: Callable[[Seen | BaseException], None], /) -> None:
        """Looks for a waiting step's event, then calls `done` as `record` does."""
        ...


class Firm(asyncio.Future[R], Generic[R]):
    """A future that cannot be cancelled: whoever awaits it and is cancelled learns so when it is done.

    What has been handed to the store or to a thread goes on in any case, so nobody may act as if it had not.
    """

    def cancel(self, msg: object | None = None) -> bool:  # noqa: ARG002 - the signature is asyncio's
        return False

    def answer(self, value: R | BaseException) -> None:
        """The callback that completes it."""
        if self.done():
            return
        if isinstance(value, BaseException):
            self.set_exception(value)
        else:
            self.set_result(value)
