"""The parts of a running worker, put together: from a claim to its settlement."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ultijobs._execution.attempt import Attempt
from ultijobs._execution.host import Handler, Host
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.claims import ClaimedJob, Reaped, Settlement
from ultijobs._queue.driver import Driver
from ultijobs._queue.lanes import capped_name
from ultijobs._queue.records import Outcome
from ultijobs._queue.telling import WorkerOrder
from ultijobs._service.trouble import Trouble
from ultijobs._worker.caps import Caps
from ultijobs._worker.chores import Chores
from ultijobs._worker.claim import Claimer, Hold
from ultijobs._worker.deliverer import Deliverer
from ultijobs._worker.fate import Fates
from ultijobs._worker.flight import Flight, Phase, Roster, begun, outcome_of
from ultijobs._worker.heartbeat import Heartbeat, Identity
from ultijobs._worker.keeper import LeaseKeeper
from ultijobs._worker.limiter import Limiter
from ultijobs._worker.losses import Losses
from ultijobs._worker.observing import Ended, Observer
from ultijobs._worker.policies import crash_policies
from ultijobs._worker.reaper import Reaper
from ultijobs._worker.rounds import Rounds
from ultijobs._worker.settings import Settings
from ultijobs._worker.settle import Settler
from ultijobs._worker.signals import Signals
from ultijobs._worker.slots import KeptSlots
from ultijobs._worker.steps import CoalescedSteps
from ultijobs._worker.tally import Tally
from ultijobs._worker.watch import LoopWatch

__all__ = ["Crew"]

SHORT: Final = 0.75
"""The share of a lease that a fresh claim should have left; with less it is renewed at once."""
GIVES_A_DUE_TIME: Final = frozenset({Outcome.RETRIED, Outcome.SUSPENDED, Outcome.RETURNED})


class Crew:
    """All between the driver and the attempts of one process. While `closing`, what is claimed goes straight back."""

    def __init__(
        self,
        driver: Driver,
        handlers: Iterable[Handler],
        identity: Identity,
        settings: Settings,
        limiter: Limiter,
        caps: Caps,
        trouble: Trouble,
        metrics: Metrics,
        host: Callable[[CoalescedSteps], Host],
        ordered: Callable[[WorkerOrder], None],
        observer: Observer | None = None,
    ) -> None:
        self.identity = identity
        self._observer = observer
        self._driver = driver
        self._handlers = {handler.name: handler for handler in handlers}
        self._worker_id = identity.worker_id
        self._short = settings.lease.total_seconds() * SHORT
        self._closing = False
        self._flying: set[Flight] = set()
        self.roster = Roster()
        self.tally = Tally(metrics, identity.queues)
        self._metrics = metrics
        self._losses = Losses(driver.telemetry, self.tally, trouble, identity.worker_id)
        loop = asyncio.get_running_loop()
        self.watch = LoopWatch(self.roster, identity.worker_id, loop, threading.get_ident())
        self.settler = Settler(
            driver.settle,
            lease=settings.lease,
            roster=self.roster,
            tally=self.tally,
            losses=self._losses,
            trouble=trouble,
            worker_id=identity.worker_id,
            landed=self._landed,
            ended=self._ended,
        )
        self.steps = CoalescedSteps(driver, self.roster, trouble)
        self._host = host(self.steps)
        self.claimer = Claimer(
            driver,
            worker_id=identity.worker_id,
            queues=identity.queues,
            names=identity.names,
            limiter=limiter,
            caps=caps,
            lease=settings.lease,
            poll=settings.poll,
            settler=self.settler,
            tally=self.tally,
            trouble=trouble,
            start=self._start,
            on_limit=self._limit_met,
        )
        self._kept_slots = KeptSlots(driver, trouble, let_go=self.claimer.hint)
        self.reaper = Reaper(
            driver,
            crash_policies(self._handlers.values()),
            worker_id=identity.worker_id,
            reaped=self._reaped,
        )
        self.deliverer = Deliverer(driver, woken=self._woken)
        self.rounds = Rounds(driver, self.reaper, self.deliverer, poll=settings.poll, trouble=trouble)
        self.heartbeat = Heartbeat(
            driver,
            identity,
            claimer=self.claimer,
            watch=self.watch,
            tally=self.tally,
            trouble=trouble,
            ordered=ordered,
        )
        self.keeper = LeaseKeeper(
            driver.lease_link,
            settings.lease,
            self.roster,
            Fates(self.roster, self.tally, self._losses, loop),
            self.watch,
            trouble,
            identity.worker_id,
            self.heartbeat.beat,
            self._leases_kept,
        )
        self.signals = Signals(
            identity,
            settings.poll,
            roster=self.roster,
            claimer=self.claimer,
            keeper=self.keeper,
            rounds=self.rounds,
            heartbeat=self.heartbeat,
        )
        self.caps = caps
        self.chores = Chores(
            driver, identity=identity, reaper=self.reaper, caps=caps, trouble=trouble, filed=self._rows_filed
        )

    @property
    def closing(self) -> bool:
        return self._closing

    def wind_up(self) -> None:
        """Claims nothing from now on; what runs is told so, and what is claimed meanwhile goes straight back."""
        self._closing = True
        self._host.winding_down = True
        self.claimer.stop()

    def pause(self, *, paused: bool) -> None:
        """Stops claiming without ending, or goes on; what still runs keeps running."""
        if paused:
            self.claimer.hold(Hold.ORDER)
        else:
            self.claimer.release(Hold.ORDER)
        self._host.winding_down = paused
        self.heartbeat.paused = paused
        self.heartbeat.hurry()

    async def others_running(self) -> bool:
        """True while another worker runs a job that this one could."""
        mine = self.identity
        leases = await self._driver.inspect.leases()
        return any(lease.name in mine.names and lease.queue in mine.queues and not lease.expired for lease in leases)

    def flying(self) -> list[Flight]:
        """The flights whose bodies have not ended."""
        return list(self._flying)

    def hand_back(self, flight: Flight) -> None:
        """Returns the claim at no cost: due at once, the attempt not counted."""
        settlement = flight.body.hand_back()
        if settlement is not None:
            self.settler.put(flight, settlement)

    async def close(self) -> None:
        await self.steps.close()
        await self.settler.close()
        await self._kept_slots.close()
        await self._losses.close()

    def _start(self, jobs: Sequence[ClaimedJob], ends: float) -> None:
        if self.claimer.limited and any(map(self.caps.misfiled, jobs)):
            self.chores.misfiled()
        flights = [self._flight(job, ends) for job in jobs]
        # All leases are kept before the first handler runs: it may block the loop.
        self.roster.add(flights)
        if ends - time.monotonic() < self._short:
            # The claim's answer came late; the next round may come too late.
            self.keeper.renew_soon()
        loop = asyncio.get_running_loop()
        for flight in flights:
            if self.closing:
                self.claimer.slot_freed(flight.job)
                self.hand_back(flight)
            else:
                self._flying.add(flight)
                flight.task = begun(self._fly(flight), loop)

    def _flight(self, job: ClaimedJob, ends: float) -> Flight:
        handler = self._handlers[job.name]
        return Flight(job, Attempt(job, handler, self._host), ends, getattr(handler.fn, "__code__", None))

    async def _fly(self, flight: Flight) -> None:
        settlement: Settlement | None = None
        began = time.monotonic()
        try:
            settlement = await flight.body.run()
        except Exception as error:  # noqa: BLE001 - an attempt that breaks must not take the worker with it
            job = flight.job
            emit(
                logging.CRITICAL,
                "jobs.worker.attempt-broken",
                f"the attempt of {job.name} broke; its lease lapses: {error!r}",
                exc_info=error,
                job_id=job.id,
                run_id=job.run_id,
                name=job.name,
                attempt=job.attempt,
                worker_id=self._worker_id,
            )
        finally:
            self._flying.discard(flight)
            if self.heartbeat.paused and not self._flying:
                self.heartbeat.hurry()
            self.claimer.slot_freed(flight.job)
            self.tally.ran(flight.job.queue, time.monotonic() - began)
            self.tally.replayed(flight.body.replayed)
            if settlement is not None:
                if flight.body.unreadable:
                    # A newer release's record: this process would only hand it back again.
                    self.claimer.leave_alone(settlement.id)
                self.settler.put(flight, settlement)
            else:
                if self.roster.move(flight, Phase.LOST):
                    self._losses.take(flight, "its attempt broke off")
                self.roster.remove(flight)
                self._ended(flight, outcome_of(flight.phase), None)

    def _reaped(self, claims: list[Reaped]) -> None:
        self._losses.reaped(claims)
        self.claimer.hint()

    def _woken(self, runs: int) -> None:
        self._metrics.add(series.EVENTS_DELIVERED, by=runs)
        self.claimer.hint()

    def _rows_filed(self) -> None:
        self.claimer.hint()
        if self.claimer.limited:
            # Whoever enqueues them outside of their lanes goes on.
            self.chores.misfiled()

    def _limit_met(self) -> None:
        self.heartbeat.hurry()

    def _leases_kept(self, kept: bool) -> None:
        if kept:
            self.claimer.release(Hold.LEASES)
        else:
            self.claimer.hold(Hold.LEASES)

    def _ended(self, flight: Flight, outcome: Outcome, settlement: Settlement | None) -> None:
        if outcome is Outcome.CANCELLED:
            self._kept_slots.ended(flight)
        if self._observer is not None:
            executed, replayed = flight.body.steps
            self._observer(Ended(flight.job, outcome, settlement, flight.body.error, executed, replayed))

    def _landed(self, settlement: Settlement) -> None:
        if capped_name(settlement.lane) is not None:
            self.claimer.hint()
        if settlement.outcome not in GIVES_A_DUE_TIME:
            return
        if settlement.delay or settlement.outcome is Outcome.SUSPENDED:
            self.claimer.due_changed()
        else:
            self.claimer.hint()
