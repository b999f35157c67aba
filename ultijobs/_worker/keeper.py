"""The lease keeper: a thread with a loop and a connection of its own that renews every lease in flight.

A handler that blocks the event loop, or keeps it busy, stops neither renewals nor deadlines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from ultijobs._coalesce import Backoff
from ultijobs._log import emit
from ultijobs._queue.driver import LeaseLink
from ultijobs._queue.telling import WorkerBeat
from ultijobs._service.trouble import Trouble
from ultijobs._worker.fate import Fates
from ultijobs._worker.flight import Phase, Roster
from ultijobs._worker.renewal import Renewal, closed
from ultijobs._worker.watch import LoopWatch

__all__ = ["LeaseKeeper"]

TICK: Final = 0.25
LEAST_WAIT: Final = 0.005


class LeaseKeeper:
    """Renews at a third of the lease, all flights in one statement. `start` is called on the loop of the handlers.

    A flight whose lease ends is lost, once: it is logged, counted, its body cancelled, and nothing of it is written any
    more.
    """

    def __init__(
        self,
        link: Callable[[], LeaseLink],
        lease: timedelta,
        roster: Roster,
        fates: Fates,
        watch: LoopWatch,
        trouble: Trouble,
        worker_id: str,
        beat: Callable[[], WorkerBeat],
        kept: Callable[[bool], None],
    ) -> None:
        """`kept` is called on the loop of the handlers when renewals begin to fail, and when they land again."""
        self._roster = roster
        self._fates = fates
        self._watch = watch
        self._beat = beat
        self._kept = kept
        self._failing_since: float | None = None
        self._trouble = trouble
        self._worker_id = worker_id
        self._seconds = lease.total_seconds()
        self._renewal = Renewal(link, lease, roster, fates, lambda: fates.post(self._ready.set))
        self._backoff = Backoff(first=self._seconds / 60, most=self._seconds / 6)
        self._thread: threading.Thread | None = None
        self._stopped: asyncio.Future[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stopped = asyncio.get_running_loop().create_future()
        self._ready = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="ultijobs-leases", daemon=True)
        self._thread.start()

    async def ready(self) -> None:
        """Returns when the keeper's connection stands; nothing should be claimed before."""
        await self._ready.wait()

    async def broken(self) -> None:
        """Raises when the keeper has ended by itself: without it every lease lapses."""
        if self._stopped is not None:
            await asyncio.shield(self._stopped)
            raise RuntimeError("the lease keeper has ended; its log line says why")

    async def stop(self) -> None:
        """Returns when the thread and its connection are gone."""
        if self._thread is None or self._stopped is None:
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopping.set)
        await self._stopped
        self._thread.join()
        self._thread = None

    @property
    def failing_for(self) -> float | None:
        """For how many seconds no renewal has landed, once one has failed; None while they land."""
        since = self._failing_since
        return None if since is None else time.monotonic() - since

    def renew_soon(self) -> None:
        """Renews at once, so that a cancelled job is learned of now. Safe from any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hurry.set)

    # -- on the keeper's thread ------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._main())
        except Exception as error:  # noqa: BLE001 - a keeper that dies is told; its leases lapse and are fenced
            emit(
                logging.CRITICAL,
                "jobs.worker.keeper-failed",
                f"the lease keeper ended: {error!r}",
                exc_info=error,
                worker_id=self._worker_id,
            )
        finally:
            self._fates.post(self._report_stopped)

    def _report_stopped(self) -> None:
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    async def _main(self) -> None:
        renewals = asyncio.create_task(self._renew_until_stopped())
        ticks = asyncio.create_task(self._tick_until_stopped())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait((renewals, ticks, stopping), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (renewals, ticks, stopping):
                task.cancel()
            await asyncio.gather(renewals, ticks, stopping, return_exceptions=True)

    async def _renew_until_stopped(self) -> None:
        link: LeaseLink | None = None
        failures = 0
        next_at = time.monotonic()
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(LEAST_WAIT, next_at - time.monotonic())):
                        await self._hurry.wait()
                self._hurry.clear()
                started = time.monotonic()
                try:
                    using, link = link, None
                    link = await self._renewal.land(using, self._silent)
                    self._tell(failing=False)
                    if self._watch.blocked:
                        # The worker's own heartbeat is stuck behind the handler; it would pass for gone.
                        async with asyncio.timeout(self._seconds / 4):
                            await link.beat(self._beat())
                except Exception as error:  # noqa: BLE001 - whatever went wrong, the next try has a new connection
                    failures += 1
                    self._warn(f"{type(error).__qualname__}: {error}")
                    if link is not None:
                        await closed(link)
                        link = None
                    next_at = time.monotonic() + self._backoff.after(failures)
                else:
                    failures = 0
                    next_at = started + self._seconds / 3
        finally:
            if link is not None:
                await closed(link)

    def _silent(self) -> None:
        self._warn(f"no answer for {self._seconds / 2:g} s, asking on a second connection")

    def _tell(self, *, failing: bool) -> None:
        if failing is (self._failing_since is None):
            self._failing_since = time.monotonic() if failing else None
            self._fates.post(self._kept, not failing)

    def _warn(self, what: str) -> None:
        self._tell(failing=True)
        told = f"a renewal of the leases failed, nothing is claimed until one lands: {what}"
        self._trouble.repeated(logging.WARNING, "jobs.heartbeat.failed", told)

    async def _tick_until_stopped(self) -> None:
        while True:
            now = time.monotonic()
            soonest = now + TICK
            for flight in self._roster.all():
                if flight.phase is Phase.HELD:
                    if flight.ends <= now:
                        self._fates.lost(flight, "no renewal landed within the lease")
                    else:
                        soonest = min(soonest, flight.ends)
                due = flight.body.due
                if due <= now:
                    self._fates.post(flight.body.check)
                else:
                    soonest = min(soonest, due)
            self._watch.check(now)
            await asyncio.sleep(max(LEAST_WAIT, soonest - time.monotonic()))
