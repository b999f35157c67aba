"""Lost claims: logged and counted by this worker at once, and told to the store, so that a fleet counts each once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Final

from ultijobs._coalesce import Backoff, Coalescer
from ultijobs._log import emit
from ultijobs._queue.claims import Reaped
from ultijobs._queue.records import Outcome
from ultijobs._queue.telemetry import LostClaim, TelemetryStore
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Flight
from ultijobs._worker.tally import Tally
from ultijobs.errors import DriverUnavailable

__all__ = ["Losses"]

LAST_WORD_WITHIN: Final = 1.0


class Losses:
    """Made on the loop of the handlers; `take` is safe from any thread.

    Whoever records an attempt as lost counts it: this worker, or the one that reaped the claim when this one was
    stopped or cut off. A process that dies first has told nothing, and is counted by the reaper.
    """

    def __init__(self, store: TelemetryStore, tally: Tally, trouble: Trouble, worker_id: str) -> None:
        self._tally = tally
        self._worker_id = worker_id
        self._loop = asyncio.get_running_loop()
        self._untold: set[int] = set()
        self._notes = Coalescer(
            store.note_lost,
            limit=500,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            on_trouble=lambda error: trouble.failed("jobs.worker.tick-failed", "telling a lost lease", error),
        )

    def take(self, flight: Flight, why: str) -> None:
        """Of each lost flight, once."""
        job = flight.job
        self._untold.add(job.lease_no)
        self._tally.ended(Outcome.LOST, job.queue)
        emit(
            logging.ERROR,
            "jobs.lease.lost",
            f"lost the lease of {job.name}: {why}",
            job_id=job.id,
            run_id=job.run_id,
            name=job.name,
            attempt=job.attempt,
            lease_no=job.lease_no,
            worker_id=self._worker_id,
            code="X_JOB_LEASE_LOST",
        )
        # The loop is closed when the process gives up.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note, flight)

    def reaped(self, claims: Iterable[Reaped]) -> None:
        """Counts what this process has reaped and nobody had told; a loss of its own it has counted for itself."""
        for claim in claims:
            if not claim.noted:
                continue
            if claim.lease_no in self._untold:
                self._tally.told_lost(claim.queue)
            else:
                self._tally.took_over(claim.queue)

    async def close(self) -> None:
        """Tells what is left, if the database answers at once."""
        await self._notes.close(within=LAST_WORD_WITHIN)

    def _note(self, flight: Flight) -> None:
        job = flight.job

        def done(noted: bool | BaseException) -> None:
            self._untold.discard(job.lease_no)
            if noted is True:
                self._tally.told_lost(job.queue)

        self._notes.put(LostClaim(job.id, job.lease_no), done)
