"""The gauges of the whole fleet, exported by the one process that holds the seat for them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from ultijobs._ids import new_id
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._metrics.series import Series
from ultijobs._queue.driver import Driver
from ultijobs._queue.telemetry import Seat
from ultijobs._queue.views import QueueRow
from ultijobs._service.trouble import Trouble

__all__ = ["Gauges", "Readings", "outbox_gauges", "queue_gauges"]

Readings: TypeAlias = Mapping[Series, Mapping[tuple[str, ...], float]]

EVERY: Final = 5.0
LEASE: Final = timedelta(seconds=15)
KEPT_AT_ZERO: Final = 600.0
"""How long a queue that is gone is still exported, as empty: long enough for an alert to see that it is."""
LEAVES_WITHIN: Final = 1.0
_AGES: Final = frozenset({series.QUEUE_OLDEST})


class Gauges:
    """Reads and exports while it holds the seat; otherwise none, also when its loop stands still for that long.

    Reading is one bounded statement, in a task of its own: nothing of it is in the way of claims.
    """

    def __init__(
        self,
        driver: Driver,
        metrics: Metrics,
        *,
        seat: Seat,
        holder: str,
        trouble: Trouble,
        read: Callable[[Driver], Awaitable[Readings]],
        clear: Iterable[Series],
    ) -> None:
        self._driver = driver
        self._metrics = metrics
        self._seat: Final = seat
        # Names may be shared; a seat is one process's.
        self._holder: Final = f"{holder}:{new_id().hex[-8:]}"
        self._trouble = trouble
        self._read = read
        self._cleared = tuple(clear)
        self._held = False

    async def run(self) -> None:
        """Until it is cancelled; then the seat is free at once."""
        try:
            while True:
                try:
                    await self.once()
                except Exception as error:  # noqa: BLE001 - the next round tries again
                    self._trouble.failed("jobs.worker.depth-failed", f"reading the gauges of the {self._seat}", error)
                else:
                    self._trouble.worked(f"reading the gauges of the {self._seat}")
                await asyncio.sleep(EVERY)
        finally:
            await self.leave()

    async def once(self) -> bool:
        """One round; True when this process exports now."""
        asked = time.monotonic()
        self._held = await self._driver.telemetry.take_seat(self._seat, self._holder, lease=LEASE)
        if not self._held:
            self._clear()
            return False
        until = asked + LEASE.total_seconds()
        for each, values in (await self._read(self._driver)).items():
            self._metrics.replace(each, values, until=until, most=each in _AGES)
        if self._seat == "queues":
            self._metrics.replace(series.PUBLISHER, {(): 1.0}, until=until)
        return True

    def _clear(self) -> None:
        for each in self._cleared:
            self._metrics.replace(each, {})
        if self._seat == "queues":
            self._metrics.replace(series.PUBLISHER, {(): 0.0})

    async def leave(self) -> None:
        """Exports nothing from now on, and lets another do so at once."""
        self._clear()
        if self._held:
            self._held = False
            # Its lease frees the seat too, later.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(LEAVES_WITHIN):
                    await self._driver.telemetry.leave_seat(self._seat, self._holder)


def queue_gauges(driver: Driver, metrics: Metrics, *, holder: str, trouble: Trouble) -> Gauges:
    """Depth, age and dead jobs of every queue."""
    return Gauges(
        driver,
        metrics,
        seat="queues",
        holder=holder,
        trouble=trouble,
        read=_Queues().read,
        clear=(series.QUEUE_DEPTH, series.QUEUE_OLDEST, series.QUEUE_DEAD),
    )


def outbox_gauges(outbox: Driver, metrics: Metrics, *, holder: str, trouble: Trouble) -> Gauges:
    """What waits in the outbox, since when, and what was set aside."""
    return Gauges(
        outbox,
        metrics,
        seat="outbox",
        holder=holder,
        trouble=trouble,
        read=_outbox,
        clear=(series.OUTBOX_STAGED, series.OUTBOX_OLDEST, series.OUTBOX_SET_ASIDE),
    )


class _Queues:
    """Remembers which queues there were."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    async def read(self, driver: Driver) -> Readings:
        rows = {row.queue: row for row in (await driver.inspect.stats()).queues}
        now = time.monotonic()
        self._seen.update(dict.fromkeys(rows, now))
        self._seen = {queue: at for queue, at in self._seen.items() if now - at < KEPT_AT_ZERO}

        def shown(value: Callable[[QueueRow], float]) -> dict[tuple[str, ...], float]:
            return {(queue,): value(rows[queue]) if queue in rows else 0.0 for queue in sorted(self._seen)}

        return {
            series.QUEUE_DEPTH: shown(lambda row: row.ready.value),
            series.QUEUE_OLDEST: shown(lambda row: (row.oldest_ready_ms or 0) / 1000),
            series.QUEUE_DEAD: shown(lambda row: row.dead.value),
        }


async def _outbox(driver: Driver) -> Readings:
    depth = await driver.outbox.depth()
    age = 0.0 if depth.oldest is None else (await driver.inspect.now() - depth.oldest).total_seconds()
    return {
        series.OUTBOX_STAGED: {(): depth.staged.value},
        series.OUTBOX_OLDEST: {(): max(age, 0.0)},
        series.OUTBOX_SET_ASIDE: {(): depth.set_aside.value},
    }
