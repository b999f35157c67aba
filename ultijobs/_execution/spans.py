"""The span of one attempt: `job.<name>`, a child of what enqueued it, ended with the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from ultijobs import _tracing
from ultijobs._execution.ending import Ending
from ultijobs._queue.claims import ClaimedJob, Settlement
from ultijobs._queue.records import Outcome

__all__ = ["Traced", "traced"]


class Traced(Protocol):
    """What a span tells of an attempt once it is over."""

    @property
    def job(self) -> ClaimedJob: ...
    @property
    def ending(self) -> Ending | None: ...
    @property
    def error(self) -> BaseException | None:
        """What the attempt failed with; None when it did not."""
        ...


async def traced(attempt: Traced, run: Callable[[], Awaitable[Settlement | None]]) -> Settlement | None:
    """What `run` answers; it runs within the span, so that everything below the handler is a child of that."""
    job = attempt.job
    span = _tracing.consuming(job)
    if span is None:
        return await run()
    settlement: Settlement | None = None
    try:
        with span.current():
            settlement = await run()
        return settlement
    finally:
        if settlement is not None:
            span.end(settlement.outcome.value, attempt.error, settlement.error_code)
        else:
            cancelled = attempt.ending is Ending.CANCELLED
            span.end(Outcome.CANCELLED.value if cancelled else Outcome.LOST.value, attempt.error)
