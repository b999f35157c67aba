"""Settlements: coalesced, retried while they can still hold, their verdicts counted. No job's task waits for them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from ultijobs._coalesce import Backoff, Coalescer
from ultijobs._execution.outcome import without_texts
from ultijobs._queue.claims import Settlement, Verdict
from ultijobs._queue.records import Outcome
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Flight, Phase, Roster, outcome_of
from ultijobs._worker.losses import Losses
from ultijobs._worker.tally import Tally
from ultijobs.errors import DriverUnavailable

__all__ = ["Settler"]

FAILURES: Final = frozenset({Outcome.RETRIED, Outcome.DEAD, Outcome.FAILED})


class Settler:
    """Owns a flight from its outcome until the settlement is durable. The lease is renewed meanwhile.

    A settlement that fails is tried again until one lease after the claim surely ended: as long as nobody took the row
    over, the fence still lets it through.
    """

    def __init__(
        self,
        settle: Callable[[Sequence[Settlement]], Awaitable[list[Verdict]]],
        *,
        lease: timedelta,
        roster: Roster,
        tally: Tally,
        losses: Losses,
        trouble: Trouble,
        worker_id: str,
        landed: Callable[[Settlement], None],
        ended: Callable[[Flight, Outcome, Settlement | None], None],
    ) -> None:
        self._lease = lease.total_seconds()
        self._roster = roster
        self._tally = tally
        self._losses = losses
        self._trouble = trouble
        self._worker_id = worker_id
        self._landed = landed
        self._ended = ended
        self._progress = asyncio.Event()
        self._confirming: set[asyncio.Task[None]] = set()
        self._coalescer = Coalescer(
            settle,
            limit=500,
            transient=(DriverUnavailable,),
            backoff=Backoff(),
            useful=self._useful,
            on_trouble=lambda error: trouble.failed("jobs.worker.settle-failed", "settling", error),
        )

    @property
    def pending(self) -> int:
        return self._coalescer.pending

    def put(self, flight: Flight, settlement: Settlement) -> None:
        """Takes over a flight whose body has ended; does nothing for one that is lost or cancelled."""
        if self._roster.move(flight, Phase.SETTLING):
            self._send(flight, settlement, last=False)
        elif flight.phase is not Phase.SETTLING:
            self._roster.remove(flight)
            self._ended(flight, outcome_of(flight.phase), settlement)

    async def below(self, backlog: int) -> None:
        """Returns when fewer than `backlog` settlements are pending."""
        while self.pending >= backlog:
            self._progress.clear()
            await self._progress.wait()

    async def drained(self) -> None:
        """Returns when every settlement has its verdict and every failure is reported."""
        await self._coalescer.drained()
        if self._confirming:
            await asyncio.wait(self._confirming)

    async def close(self) -> None:
        await self._coalescer.close()

    def _send(self, flight: Flight, settlement: Settlement, *, last: bool) -> None:
        def done(answer: Verdict | BaseException) -> None:
            self._progress.set()
            if isinstance(answer, Verdict):
                self._roster.remove(flight)
                self._judged(flight, settlement, answer)
                if settlement.outcome in FAILURES:
                    self._confirm(flight, answer)
            elif isinstance(answer, DriverUnavailable | asyncio.CancelledError):
                self._roster.remove(flight)
                self._losses.take(flight, f"its settlement never landed: {answer}")
            elif last:
                self._roster.remove(flight)
                self._refused(flight, answer)
            else:
                # What the database refuses is the text of an error; the outcome matters more.
                self._refused(flight, answer)
                self._send(flight, without_texts(settlement), last=True)

        self._coalescer.put(settlement, done)

    def _judged(self, flight: Flight, settlement: Settlement, verdict: Verdict) -> None:
        self._trouble.answered()
        outcome = settlement.outcome
        if verdict is Verdict.SETTLED:
            self._tally.ended(outcome, settlement.queue)
            self._tally.settled()
            self._landed(settlement)
        elif verdict is Verdict.CANCELLED:
            outcome = Outcome.CANCELLED
            self._tally.ended(outcome, settlement.queue)
        else:
            outcome = Outcome.LOST
            self._losses.take(flight, "its settlement came too late")
        self._ended(flight, outcome, settlement)

    def _confirm(self, flight: Flight, verdict: Verdict) -> None:
        task = asyncio.get_running_loop().create_task(flight.body.confirm(verdict))
        self._confirming.add(task)
        task.add_done_callback(self._confirming.discard)

    def _refused(self, flight: Flight, error: BaseException) -> None:
        job = flight.job
        self._trouble.repeated(
            logging.ERROR,
            "jobs.worker.settle-failed",
            f"the database refused the settlement of {job.name}: {type(error).__qualname__}: {error}",
            job_id=job.id,
            run_id=job.run_id,
            name=job.name,
            attempt=job.attempt,
            lease_no=job.lease_no,
        )

    def _useful(self, settlement: Settlement) -> bool:
        flight = self._roster.of(settlement.lease_no)
        return flight is not None and time.monotonic() < flight.ends + self._lease
