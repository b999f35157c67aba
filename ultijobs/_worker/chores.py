"""What a worker does now and then besides jobs: history's days ahead, crash policies of others, names nobody runs."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from ultijobs._log import emit
from ultijobs._queue.driver import Driver
from ultijobs._worker.reaper import Reaper
from ultijobs._worker.trouble import Trouble

__all__ = ["Chores"]

EVERY: Final = 60.0
HOUSEKEEPING_EVERY: Final = 30
"""Minutes."""
GONE: Final = "gone"


class Chores:
    """One round a minute; a chore that fails is told and tried again with the next round."""

    def __init__(
        self, driver: Driver, *, worker_id: str, queues: Sequence[str], names: Sequence[str], reaper: Reaper,
        trouble: Trouble,
    ) -> None:
        self._driver = driver
        self._worker_id = worker_id
        self._queues = frozenset(queues)
        self._names = frozenset(names)
        self._reaper = reaper
        self._trouble = trouble

    async def run(self) -> None:
        rounds = 0
        while True:
            try:
                if rounds % HOUSEKEEPING_EVERY == 0:
                    await self._driver.housekeep()
                await self._warn_of_unserved()
            except Exception as error:  # noqa: BLE001 - the next round tries again
                self._trouble.failed("jobs.worker.chores-failed", "housekeeping", error)
            rounds += 1
            await asyncio.sleep(EVERY * random.uniform(0.9, 1.0))  # noqa: S311 - keeps processes apart
