"""The worker's own row: who it is, what it serves, proof of progress; its answer carries an operator's order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from ultijobs._ids import new_id
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import WorkerBeat, WorkerOrder
from ultijobs._service.trouble import Trouble
from ultijobs._worker.claim import Claimer
from ultijobs._worker.tally import Tally
from ultijobs._worker.watch import LoopWatch

__all__ = ["Heartbeat", "Identity"]

WHILE_LIMITED: Final = 2.0
_DOING: Final = "writing the worker's heartbeat"
STATM: Final = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker says about itself and does not change."""

    worker_id: str
    version: str
    code_version: str | None
    environment: str | None
    queues: tuple[str, ...]
    names: tuple[str, ...]
    concurrency: int
    lease: timedelta


class Heartbeat:
    """Beats at a third of the lease, and at once when told to. `ordered` gets what each beat is answered."""

    def __init__(
        self,
        driver: Driver,
        identity: Identity,
        *,
        claimer: Claimer,
        watch: LoopWatch,
        tally: Tally,
        trouble: Trouble,
        ordered: Callable[[WorkerOrder], None],
    ) -> None:
        self._driver = driver
        self._identity = identity
        self._claimer = claimer
        self._watch = watch
        self._tally = tally
        self._trouble = trouble
        self._ordered = ordered
        self._instance: UUID = new_id()
        self._host = socket.gethostname()
        self._hurry = asyncio.Event()
        self.state = "running"
        self.paused = False
        self.listening = True

    @property
    def instance(self) -> UUID:
        """The id of this worker's row."""
        return self._instance

    def hurry(self) -> None:
        """Beats now."""
        self._hurry.set()

    async def run(self) -> None:
        interval = self._identity.lease.total_seconds() / 3
        while True:
            self._hurry.clear()
            await self.once()
            # Whom a limit holds back is told while it is news.
            wait = min(interval, WHILE_LIMITED) if self._claimer.limited else interval
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._hurry.wait()

    async def once(self) -> None:
        try:
            order = await self._driver.beat(self.beat())
        except Exception as error:  # noqa: BLE001 - the next beat tries again
            self._trouble.failed("jobs.worker.beat-failed", _DOING, error)
            return
        self._trouble.worked(_DOING)
        self._ordered(order)

    def _state(self) -> str:
        if not self.paused or self.state != "running":
            return self.state
        return "draining" if self._claimer.running else "drained"

    def beat(self) -> WorkerBeat:
        """How the worker is now. Safe from any thread."""
        me = self._identity
        return WorkerBeat(
            instance=self._instance,
            worker_id=me.worker_id,
            host=self._host,
            pid=os.getpid(),
            version=me.version,
            code_version=me.code_version,
            environment=me.environment,
            queues=me.queues,
            names=me.names,
            concurrency=me.concurrency,
            state=self._state(),
            free_slots=self._claimer.free,
            running=self._claimer.running,
            loop_lag_ms=int(self._watch.lag() * 1000),
            rss_bytes=_rss(),
            claimed_ago_ms=self._tally.claimed_ago_ms,
            settled_ago_ms=self._tally.settled_ago_ms,
            counters=self._tally.counts(),
            wedged=self._watch.wedged,
            listening=self.listening,
            lease_ms=int(me.lease.total_seconds() * 1000),
            full_queues=self._claimer.full_queues(),
            limited=self._claimer.limited_for(),
        )


def _rss() -> int:
    """Resident memory now where /proc tells it, else its peak."""
    try:
        return int(STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
