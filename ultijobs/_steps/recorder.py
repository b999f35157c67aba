"""Writes an attempt's step records while its claim is held, and refuses everything after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from ultijobs._log import emit
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.events import Look, Seen, Sight
from ultijobs._queue.steps import StepAnswer, StepStatus, StepWrite
from ultijobs._steps.executing import Executing
from ultijobs._steps.store import Firm, StepStore
from ultijobs._text import clip
from ultijobs.errors import Aborted, JobLeaseLost, UltijobsError

__all__ = ["Recorder"]

R = TypeVar("R")


class Recorder:
    """The write fence of one attempt: closed by the attempt's end, or by the store's answer that the claim is gone."""

    __slots__ = ("_error_limit", "_job", "_loop", "_store", "closed", "fenced")

    def __init__(self, job: ClaimedJob, store: StepStore, loop: asyncio.AbstractEventLoop, *, error_limit: int) -> None:
        self._job = job
        self._store = store
        self._loop = loop
        self._error_limit = error_limit
        self.closed: UltijobsError | None = None
        self.fenced = False

    def close(self, reason: UltijobsError) -> None:
        """From now on every step and every write is `X_ABORTED`."""
        if self.closed is None:
            self.closed = reason

    def refuse_if_closed(self, step: str) -> None:
        """Raises `Aborted` when this attempt may record nothing any more."""
        if self.closed is not None:
            raise Aborted(
                f"the step {step!r} is refused: {self.closed.cause}", meta={"step": step, "because": self.closed.code}
            ) from self.closed

    async def write(self, record: StepWrite) -> StepAnswer:
        """Returns when the record is durable. A cancel meanwhile is raised after that."""
        self.refuse_if_closed(record.name)
        future: Firm[StepAnswer] = Firm(loop=self._loop)
        self._store.record(record, future.answer)
        return await self._answered(record.name, future, lambda answer: answer.held)

    async def look(self, look: Look) -> Seen:
        """What a waiting step sees now; its record is durable when this returns. A cancel is raised after that."""
        self.refuse_if_closed(look.step)
        future: Firm[Seen] = Firm(loop=self._loop)
        self._store.look(look, future.answer)
        return await self._answered(look.step, future, lambda seen: seen.sight is not Sight.LOST)

    async def failure(self, step: Executing, error: BaseException) -> None:
        """Records that the step failed. Never raises: the error of the step is what counts."""
        if self.closed is not None:
            return
        try:
            text = clip(_text(error), self._error_limit)
            await self.write(step.record(self._job, StepStatus.FAILED, error=text))
        except Exception as trouble:  # noqa: BLE001 - whatever it is must not take the place of the step's error
            emit(
                logging.WARNING,
                "jobs.step.unrecorded",
                f"the failure of step {step.name} could not be recorded: {trouble}",
                job_id=self._job.id,
                run_id=self._job.run_id,
                name=self._job.name,
                attempt=self._job.attempt,
                lease_no=self._job.lease_no,
            )

    async def _answered(self, step: str, future: Firm[R], held: Callable[[R], bool]) -> R:
        try:
            answer = await future
        except asyncio.CancelledError:
            if future.exception() is None:
                self._heed(held(future.result()))
            raise
        self._heed(held(answer))
        self.refuse_if_closed(step)
        return answer

    def _heed(self, held: bool) -> None:
        if not held:
            self.fenced = True
            self.close(JobLeaseLost("the claim is not held any more"))


def _text(error: BaseException) -> str:
    kind = error.code if isinstance(error, UltijobsError) else type(error).__qualname__
    try:
        said = error.cause if isinstance(error, UltijobsError) else str(error)
    except Exception:  # noqa: BLE001 - an exception whose text cannot be had still failed
        return str(kind)
    return f"{kind}: {said}"
