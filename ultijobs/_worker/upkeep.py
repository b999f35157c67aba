"""What one worker of a schema does for all: it removes what is over its time, and sounds the common alarms."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from ultijobs._log import emit
from ultijobs._queue.driver import Driver
from ultijobs._queue.retention import Windows
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retention.declared import windows_in
from ultijobs._retention.sweeping import sweep
from ultijobs._service.trouble import Trouble
from ultijobs._worker.alarms import Alarms

__all__ = ["Upkeep", "eldest"]

EVERY: Final = 60.0
FIRST_AFTER: Final = 10.0
CONFIRM_EVERY: Final = 3_600.0
RESTS: Final = 9.0
"""Times as long as a round took, at the least, until the next one."""


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
        self._alarms = Alarms(driver, worker_id)
        self._alarms_at = 0.0
        self._chosen = False

    async def run(self) -> None:
        """Rounds for ever; short times are looked after more often than once a minute."""
        least = min(EVERY, max(1.0, self._retention.shortest().total_seconds() / 2))
        # The worker's own row comes first: without it this one cannot be chosen.
        pause = min(least, FIRST_AFTER)
        while True:
            await asyncio.sleep(pause * random.uniform(1.0, 1.1))  # noqa: S311 - keeps processes apart
            began = time.monotonic()
            await self.round()
            pause = max(least, RESTS * (time.monotonic() - began))

    async def round(self) -> None:
        """One round: next to nothing, where another worker is the one."""
        await self._part("confirming declarations", self._confirm)
        await self._part("seeing which worker is the one", self._choose)
        if self._chosen:
            await self._part("looking for what concerns all workers", self._sound)
            await self._part("removing what is over its time", self._sweep)

    async def _part(self, doing: str, do: Callable[[], Awaitable[None]]) -> None:
        try:
            await do()
        except Exception as error:  # noqa: BLE001 - the other parts go on, and the next round tries again
            self._trouble.failed("jobs.worker.upkeep-failed", doing, error)
        else:
            self._trouble.worked(doing)

    async def _choose(self) -> None:
        self._chosen = False
        self._chosen = await eldest(self._driver) == self._instance

    async def _confirm(self) -> None:
        if time.monotonic() >= self._confirm_at:
            await self._driver.confirm_catalog(self._declared)
            self._confirm_at = time.monotonic() + CONFIRM_EVERY

    async def _sound(self) -> None:
        if time.monotonic() >= self._alarms_at:
            self._alarms_at = time.monotonic() + EVERY
            await self._alarms.sound()

    async def _sweep(self) -> None:
        catalogue = await self._driver.inspect.catalog()
        now = await self._driver.inspect.now()
        windows = windows_in(catalogue, self._retention, self._names, now)
        assert windows is not None, "our own times are among them"
        gone = await sweep(self._driver.retention, windows)
        if gone:
            listed = ", ".join(f"{count} {kind}" for kind, count in gone.items())
            emit(logging.INFO, "jobs.retention.swept", f"over their time: {listed}", worker_id=self._worker_id)


async def eldest(driver: Driver) -> UUID | None:
    """The live worker that started first; None when none has told of itself."""
    live = [worker for worker in await driver.inspect.workers() if not worker.ended]
    return min(live, key=lambda worker: (worker.started_at, worker.instance)).instance if live else None
