"""What concerns a whole schema and is said by one worker for all: who holds back vacuum, which queues nobody serves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ultijobs._log import emit
from ultijobs._queue.driver import Driver
from ultijobs._queue.health import Snapshot
from ultijobs._queue.views import QueueRow

__all__ = ["Alarms"]

OLD_SNAPSHOT: Final = 60_000


class Alarms:
    """One line for each old transaction, and one a round for each queue in which jobs are due that nobody serves."""

    def __init__(self, driver: Driver, worker_id: str) -> None:
        self._driver = driver
        self._worker_id = worker_id
        self._told: dict[str, int] = {}

    async def sound(self) -> None:
        self.old_snapshots((await self._driver.inspect.health()).snapshots)
        self._unserved_queues(await self._driver.inspect.queues())

    def old_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        told: dict[str, int] = {}
        for held in snapshots:
            if held.age_ms < OLD_SNAPSHOT:
                continue
            who = _named(held)
            told[who] = held.age_ms
            # A younger transaction of the same session is another one.
            if not 0 < self._told.get(who, 0) <= held.age_ms:
                self._warn(
                    "jobs.database.old-snapshot",
                    f"{who} has held a snapshot for {held.age_ms // 1000} s: dead rows cannot be removed while it does",
                )
        self._told = told

    def _unserved_queues(self, queues: Sequence[QueueRow]) -> None:
        for queue in queues:
            if queue.state == "unserved" and queue.ready.value:
                self._warn(
                    "jobs.worker.queue-unserved", f"no worker serves the queue {queue.queue!r}: {queue.ready} due"
                )

    def _warn(self, event: str, message: str) -> None:
        emit(logging.WARNING, event, message, worker_id=self._worker_id)


def _named(held: Snapshot) -> str:
    if held.state == "prepared":
        return f"the prepared transaction {held.query!r}"
    return f"pid {held.pid} ({held.application or 'no application name'}, {held.state or 'unknown state'})"
