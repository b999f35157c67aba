"""Slots of the fleet that outlive their claims: a cancelled job's is kept until its body has ended, then let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ultijobs._coalesce import Backoff, Coalescer
from ultijobs._queue.claims import HeldSlot
from ultijobs._queue.driver import Driver
from ultijobs._queue.lanes import capped_name
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Flight
from ultijobs.errors import DriverUnavailable

__all__ = ["KeptSlots"]

LAST_WORD_WITHIN: Final = 1.0


class KeptSlots:
    """A process that dies before it lets go leaves the slot to the end of the lease."""

    def __init__(self, driver: Driver, trouble: Trouble, let_go: Callable[[], None]) -> None:
        """`let_go` is called when slots are free again."""
        self._let_go = let_go
        self._ended = Coalescer(
            driver.let_go,
            limit=500,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            on_trouble=lambda error: trouble.failed("jobs.worker.tick-failed", "letting slots go", error),
        )

    def ended(self, flight: Flight) -> None:
        """The body of a flight that was cancelled has ended."""
        job = flight.job
        if capped_name(job.lane) is not None:
            self._ended.put(HeldSlot(job.id, job.lease_no, job.queue), self._answered)

    async def close(self) -> None:
        """Lets go what is left, if the database answers at once."""
        await self._ended.close(within=LAST_WORD_WITHIN)

    def _answered(self, free: bool | BaseException) -> None:
        if free is True:
            self._let_go()
