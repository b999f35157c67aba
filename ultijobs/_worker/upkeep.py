"""What one worker of a schema does for all: it removes what is over its time, and tells who holds back vacuum."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs._log import emit
from ultijobs._queue.driver import Driver
from ultijobs._queue.health import Snapshot
from ultijobs._queue.records import CatalogEntry
from ultijobs._queue.retention import Windows
from ultijobs._retention.declared import windows_in
from ultijobs._retention.sweeping import sweep
from ultijobs._service.trouble import Trouble

__all__ = ["Upkeep", "eldest"]

EVERY: Final = 60.0
CONFIRM_EVERY: Final = 3_600.0
RESTS: Final = 9.0
"""Times as long as a round took, at the least, until the next one."""
OLD_SNAPSHOT: Final = 60_000


class Upkeep:
    """Works only in the live worker that started first.

    No lease is written for it: when two take themselves for the first for a moment, each batch is still removed once.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        declared: Sequence[CatalogEntry],
        retention: Windows,
        instance: UUID,
        worker_id: str,
        trouble: Trouble,
    ) -> None:
        self._driver = driver
        self._declared = declared
        self._names = {(entry.kind, entry.name) for entry in declared}
        self._retention = retention
        self._instance = instance
        self._worker_id = worker_id
        self._trouble = trouble
        self._confirm_at = time.monotonic() + CONFIRM_EVERY
        self._told: dict[str, int] = {}

    async def run(self) -> None:
        """Rounds for ever; short times are looked after more often than once a minute."""
        least = min(EVERY, max(1.0, self._retention.shortest().total_seconds() / 2))
        while True:
            began = time.monotonic()
            try:
                await self.round()
            except Exception as error:  # noqa: BLE001 - the next round tries again
                self._trouble.failed("jobs.worker.upkeep-failed", "removing what is over its time", error)
            pause = max(least, RESTS * (time.monotonic() - began))
            await asyncio.sleep(pause * random.uniform(1.0, 1.1))  # noqa: S311 - keeps processes apart

    async def round(self) -> None:
        """One round: nothing, where another worker is the one."""
        if time.monotonic() >= self._confirm_at:
            await self._driver.confirm_catalog(self._declared)
            self._confirm_at = time.monotonic() + CONFIRM_EVERY
        if await eldest(self._driver) != self._instance:
            return
        self._tell((await self._driver.inspect.health()).snapshots)
        catalogue = await self._driver.inspect.catalog()
        now = await self._driver.inspect.now()
        windows = windows_in(catalogue, self._retention, self._names, now)
        assert windows is not None, "our own times are among them"
        gone = await sweep(self._driver.retention, windows)
        if gone:
            listed = ", ".join(f"{count} {kind}" for kind, count in gone.items())
            emit(logging.INFO, "jobs.retention.swept", f"over their time: {listed}", worker_id=self._worker_id)

    def _tell(self, snapshots: Sequence[Snapshot]) -> None:
        """One line for each transaction that has held back vacuum for a minute."""
        told: dict[str, int] = {}
        for held in snapshots:
            if held.age_ms < OLD_SNAPSHOT:
                continue
            who = _named(held)
            told[who] = held.age_ms
            # A younger transaction of the same session is another one.
            if not 0 < self._told.get(who, 0) <= held.age_ms:
                emit(
                    logging.WARNING,
                    "jobs.database.old-snapshot",
                    f"{who} has held a snapshot for {held.age_ms // 1000} s: dead rows cannot be removed while it does",
                    worker_id=self._worker_id,
                )
        self._told = told


def _named(held: Snapshot) -> str:
    if held.state == "prepared":
        return f"the prepared transaction {held.query!r}"
    return f"pid {held.pid} ({held.application or 'no application name'}, {held.state or 'unknown state'})"


async def eldest(driver: Driver) -> UUID | None:
    """The live worker that started first; None when none has told of itself."""
    live = [worker for worker in await driver.inspect.workers() if not worker.ended]
    return min(live, key=lambda worker: (worker.started_at, worker.instance)).instance if live else None
