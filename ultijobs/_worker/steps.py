"""The step store of a worker: reads and records of all runs share statements, and only a held claim writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from ultijobs._coalesce import Backoff, Coalescer
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import Look, Seen, Sight
from ultijobs._queue.steps import StepAnswer, StepRecord, StepWrite
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Roster
from ultijobs.errors import DriverUnavailable

__all__ = ["CoalescedSteps"]


class CoalescedSteps:
    """What the attempts of one process record and read.

    While the database is away both are tried again until the lease of their claim ends; then they end with
    `DriverUnavailable`. A write of a claim that is not held is answered `held=False` and not sent.
    """

    def __init__(self, driver: Driver, roster: Roster, trouble: Trouble) -> None:
        self._driver = driver
        self._roster = roster

        def on_trouble(error: Exception) -> None:
            trouble.failed("jobs.worker.steps-failed", "recording steps", error)

        self._writes = Coalescer(
            driver.record_steps,
            limit=500,
            lanes=2,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            useful=lambda write: roster.held(write.lease_no),
            on_trouble=on_trouble,
        )
        # One lane: two looks of a run at once would both see the same event as free.
        self._looks = Coalescer(
            driver.events.look,
            limit=500,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            useful=lambda look: roster.held(look.lease_no),
            on_trouble=on_trouble,
        )
        self._reads = Coalescer(
            self._load,
            limit=500,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            useful=roster.held_run,
            on_trouble=on_trouble,
        )

    async def load(self, run_id: UUID, /) -> Sequence[StepRecord]:
        return await self._reads.ask(run_id)

    def record(self, write: StepWrite, done: Callable[[StepAnswer | BaseException], None], /) -> None:
        if self._roster.held(write.lease_no):
            self._writes.put(write, done)
        else:
            done(StepAnswer(held=False))

    def look(self, look: Look, done: Callable[[Seen | BaseException], None], /) -> None:
        if self._roster.held(look.lease_no):
            self._looks.put(look, done)
        else:
            done(Seen(Sight.LOST))

    async def close(self) -> None:
        await self._writes.close()
        await self._looks.close()
        await self._reads.close()

    async def _load(self, run_ids: Sequence[UUID]) -> list[list[StepRecord]]:
        found = await self._driver.load_steps(run_ids)
        return [found.get(run_id, []) for run_id in run_ids]
