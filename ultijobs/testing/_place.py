"""Where an application under test keeps its queue: in memory, reached from any thread and any loop, always open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from datetime import datetime
from typing import Any, TypeVar

from ultijobs._enqueue.opening import Opening, refuse_a_running_loop
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import NewEvent
from ultijobs._queue.records import Enqueued, NewJob
from ultijobs._tx.connections import at_once
from ultijobs._tx.kinds import kind_of
from ultijobs.memory import MemoryDriver
from ultijobs.memory._rows import Row

__all__ = ["Place", "Stage"]

T = TypeVar("T")


class Stage(MemoryDriver):
    """A driver in memory that shows a test what it stores."""

    def rows(self, name: str) -> list[Row]:
        """Of one job, in the order in which they were enqueued."""
        with self._store.lock:
            return sorted((row for row in self._store.rows() if row.name == name), key=lambda row: row.id)

    def due_times(self, queues: Collection[str], names: Collection[str]) -> list[datetime]:
        """When the waiting rows of these are due, in queues that run by then; a cap or a limit may still hold them."""
        with self._store.lock:
            now = self._store.now()
            return [
                at
                for row in self._store.jobs.values()
                if row.claimable and row.queue in queues and row.name in names
                if (at := self._comes_at(row, now)) is not None
            ]

    def _comes_at(self, row: Row, now: datetime) -> datetime | None:
        pause = self._store.pause_of(row.queue, now)
        if pause is None:
            return row.run_at
        return None if pause.resume_at is None else max(row.run_at, pause.resume_at)


class Place(Opening):
    """Nothing has to be opened: what the driver in memory is asked, it answers without waiting."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(lambda: driver)

    @property
    def closed(self) -> bool:
        return False

    @property
    def here(self) -> bool:
        return True

    def joinable(self, tx: object | None) -> object | None:
        """None for one of the application's own database, which memory cannot follow: it is stored at once."""
        return tx if kind_of(tx) == "own" else None

    async def enter(self, role: str = "app") -> None: ...
    async def leave(self) -> None: ...
    def enter_sync(self) -> None: ...
    def leave_sync(self) -> None: ...

    async def call(self, work: Callable[[Driver], Coroutine[Any, Any, T]]) -> T:
        return await work(self.driver)

    async def with_tx(self, work: Callable[[Driver], Coroutine[Any, Any, T]]) -> T:
        return await work(self.driver)

    async def store(self, job: NewJob) -> Enqueued:
        return (await self.driver.enqueue([job]))[0]

    async def publish(self, event: NewEvent) -> int:
        return await self.driver.events.publish([event])

    def call_sync(self, work: Callable[[Driver], Coroutine[Any, Any, T]], *, call: str) -> T:
        refuse_a_running_loop(call)
        return at_once(work(self.driver))

    def with_tx_sync(
        self,
        work: Callable[[Driver], Coroutine[Any, Any, T]],
        *,
        call: str,
        opens: bool = True,  # noqa: ARG002 - it is open in any case
    ) -> T:
        refuse_a_running_loop(call)
        return at_once(work(self.driver))
