"""What a worker does besides jobs, once a minute: days ahead, others' declarations, ended passes, unserved names."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from ultijobs._log import emit
from ultijobs._queue.driver import Driver
from ultijobs._queue.views import by_name
from ultijobs._service.trouble import Trouble
from ultijobs._worker.caps import Caps
from ultijobs._worker.heartbeat import Identity
from ultijobs._worker.policies import catalogue_policies
from ultijobs._worker.reaper import Reaper

__all__ = ["Chores"]

EVERY: Final = 60.0
FILING_EVERY: Final = 1.0
HOUSEKEEPING_EVERY: Final = 30
"""Rounds."""
ABSENT: Final = frozenset({"gone", "drained"})


class Chores:
    """A chore that fails is told and tried again with the next round."""

    def __init__(
        self,
        driver: Driver,
        *,
        identity: Identity,
        reaper: Reaper,
        caps: Caps,
        trouble: Trouble,
        filed: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._identity = identity
        self._reaper = reaper
        self._caps = caps
        self._trouble = trouble
        self._filed = filed
        self._misfiled = asyncio.Event()

    async def run(self) -> None:
        rounds = 0
        while True:
            await self._part("housekeeping", partial(self._round, housekeeping=rounds % HOUSEKEEPING_EVERY == 0))
            rounds += 1
            until = time.monotonic() + EVERY * random.uniform(1.0, 1.1)  # noqa: S311 - keeps processes apart
            while await self._hinted(until - time.monotonic()):
                await self._part("filing rows", self._file)

    def misfiled(self) -> None:
        """Rows that are held back lie outside of their lanes; they are filed within a second."""
        self._misfiled.set()

    async def _hinted(self, within: float) -> bool:
        """True after such a hint, at most once a second; False when the time is over."""
        try:
            async with asyncio.timeout(within):
                await self._misfiled.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(min(max(0.0, within), FILING_EVERY))
        self._misfiled.clear()
        return True

    async def _part(self, doing: str, do: Callable[[], Awaitable[None]]) -> None:
        try:
            await do()
        except Exception as error:  # noqa: BLE001 - the next round tries again
            self._trouble.failed("jobs.worker.chores-failed", doing, error)
        else:
            self._trouble.worked(doing)

    async def _file(self) -> None:
        if await self._caps.file():
            self._filed()

    async def _round(self, *, housekeeping: bool) -> None:
        catalogue = await self._driver.inspect.catalog()
        self._reaper.learn(catalogue_policies(catalogue))
        if await self._caps.keep(catalogue):
            self._filed()
        await self._driver.backfills.reconcile()
        await self._warn_of_unserved()
        if housekeeping:
            await self._driver.housekeep()

    async def _warn_of_unserved(self) -> None:
        """One line for each name that is due here and that no live worker runs."""
        store = self._driver.inspect
        known = set(self._identity.names)
        due = by_name(await store.due(queues=self._identity.queues, without=sorted(known)))
        if not due:
            return
        for worker in await store.workers():
            if worker.state not in ABSENT:
                known.update(worker.names)
        for name, count in due.items():
            if name not in known:
                emit(
                    logging.WARNING,
                    "jobs.worker.name-unserved",
                    f"no worker runs the job {name!r}: {count} due",
                    name=name,
                    worker_id=self._identity.worker_id,
                )
