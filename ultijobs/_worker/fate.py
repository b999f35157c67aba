"""What ends a flight from outside: its claim is lost, or an operator cancelled the job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from ultijobs._execution.ending import Ending
from ultijobs._queue.records import Outcome
from ultijobs._worker.flight import Flight, Phase, Roster
from ultijobs._worker.losses import Losses
from ultijobs._worker.tally import Tally

__all__ = ["Fates"]


class Fates:
    """Called on the keeper's thread; bodies are told on the loop of the handlers, each flight once."""

    def __init__(self, roster: Roster, tally: Tally, losses: Losses, loop: asyncio.AbstractEventLoop) -> None:
        self._roster = roster
        self._tally = tally
        self._losses = losses
        self._loop = loop

    def lost(self, flight: Flight, why: str) -> None:
        if self._roster.move(flight, Phase.LOST):
            self._losses.take(flight, why)
            self.post(flight.body.cancel, Ending.LOST)

    def cancelled(self, flight: Flight) -> None:
        if self._roster.move(flight, Phase.CANCELLED):
            self._tally.ended(Outcome.CANCELLED, flight.job.queue)
            self.post(flight.body.cancel, Ending.CANCELLED)

    def post(self, call: Callable[..., object], *args: object) -> None:
        """Calls on the loop of the handlers; it may be closed already, when the process gives up."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)
