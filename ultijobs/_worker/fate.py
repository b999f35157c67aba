"""What ends a flight from outside: its claim is lost, or an operator cancelled the job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from ultijobs._execution.ending import Ending
from ultijobs._log import emit
from ultijobs._queue.records import Outcome
from ultijobs._worker.flight import Flight, Phase, Roster
from ultijobs._worker.tally import Tally

__all__ = ["Fates", "tell_lost"]


class Fates:
    """Called on the keeper's thread; bodies are told on the loop of the handlers, each flight once."""

    def __init__(self, roster: Roster, tally: Tally, worker_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self._roster = roster
        self._tally = tally
        self._worker_id = worker_id
        self._loop = loop

    def lost(self, flight: Flight, why: str) -> None:
        if self._roster.move(flight, Phase.LOST):
            self._tally.ended(Outcome.LOST)
            tell_lost(flight, why, self._worker_id)
            self.post(flight.body.cancel, Ending.LOST)

    def cancelled(self, flight: Flight) -> None:
        if self._roster.move(flight, Phase.CANCELLED):
            self._tally.ended(Outcome.CANCELLED)
            self.post(flight.body.cancel, Ending.CANCELLED)

    def post(self, call: Callable[..., object], *args: object) -> None:
        """Calls on the loop of the handlers; it may be closed already, when the process gives up."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)


def tell_lost(flight: Flight, why: str, worker_id: str) -> None:
    """The one line of a lost lease."""
    job = flight.job
    emit(
        logging.ERROR,
        "jobs.lease.lost",
        f"lost the lease of {job.name}: {why}",
        job_id=job.id,
        run_id=job.run_id,
        name=job.name,
        attempt=job.attempt,
        lease_no=job.lease_no,
        worker_id=worker_id,
        code="X_JOB_LEASE_LOST",
    )
