"""The claim loop: one claimer that keeps the slots filled, woken by hints, with polling as the truth."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Final
from uuid import UUID

from ultijobs._coalesce import Backoff
from ultijobs._queue.claims import ClaimAsk, ClaimedJob
from ultijobs._queue.driver import Driver
from ultijobs._service.trouble import Trouble
from ultijobs._worker.caps import Caps
from ultijobs._worker.due import NextDue
from ultijobs._worker.limiter import Limiter
from ultijobs._worker.renewal import margin_of
from ultijobs._worker.settle import Settler
from ultijobs._worker.tally import Tally

__all__ = ["Claimer", "Hold"]

MOST: Final = 500
"""Rows of one claim."""
ENOUGH: Final = 0.3
"""The share of free slots that is claimed for at once."""
GATHER: Final = 0.005
"""How long a slot waits for its neighbours when fewer are free, in seconds."""
BACKLOG: Final = 1_500
"""Settlements, beside one per slot, that may be pending when the next claim goes out."""
MOST_LEFT_ALONE: Final = 1_000


class Hold(Enum):
    """Why nothing is claimed for now."""

    ORDER = "an operator said so"
    LEASES = "what is claimed now could not be kept"


class Claimer:
    """Claims for free slots while work may be there: after a hint, a full claim, a due time, or at a poll.

    `start` gets the jobs of a claim in their order, with the monotonic time up to which their leases are surely ours;
    each takes a slot until `slot_freed`.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        worker_id: str,
        queues: Sequence[str],
        names: Sequence[str],
        limiter: Limiter,
        caps: Caps,
        lease: timedelta,
        poll: timedelta,
        settler: Settler,
        tally: Tally,
        trouble: Trouble,
        start: Callable[[Sequence[ClaimedJob], float], None],
        on_limit: Callable[[], None] = lambda: None,
    ) -> None:
        self._driver = driver
        self._worker_id = worker_id
        self._queues = list(queues)
        self._names = tuple(names)
        self._limiter = limiter
        self._caps = caps
        self._lease = lease
        self._good_for = lease.total_seconds() - margin_of(lease)
        self._poll = poll.total_seconds()
        self._settler = settler
        self._tally = tally
        self._trouble = trouble
        self._start = start
        self._on_limit = on_limit
        self.limited: Mapping[str, float | None] = {}
        """Tenants at a limit, as of the last claim. It is replaced and never changed, so any thread may read it."""
        self._backoff = Backoff(first=0.1, most=1.0)
        self._enough = max(1, math.ceil(limiter.most * ENOUGH))
        self._wake = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self._hungry = True
        self._opens: float | None = None
        """When the rate of a tenant lets it start again."""
        self._hints = 0
        self._stopping = False
        self._held: set[Hold] = set()
        self._due = NextDue(self._next_due, self._poll)
        self._left_alone: dict[UUID, None] = {}

    @property
    def running(self) -> int:
        return len(self._limiter)

    @property
    def free(self) -> int:
        return self._limiter.free

    @property
    def claiming(self) -> bool:
        """True while it claims, or would if work were there: slots are free and nothing holds it back."""
        return not self._stopping and not self._held and self.free > 0

    def full_queues(self) -> tuple[str, ...]:
        """Queues at a limit of this process. Safe from any thread."""
        return self._limiter.full_queues()

    def limited_for(self) -> dict[str, int]:
        """Tenants of whom nothing starts, as a heartbeat tells it. Safe from any thread."""
        return self._limiter.told(self.limited)

    def hint(self) -> None:
        """Work may be there now."""
        self._hints += 1
        self._hungry = True
        self._wake.set()

    def due_changed(self) -> None:
        """A row may become due sooner than known."""
        self._due.changed()
        self._wake.set()

    def leave_alone(self, id: UUID) -> None:
        """Never claims this job again; of very many the first ones are forgotten."""
        self._left_alone[id] = None
        if len(self._left_alone) > MOST_LEFT_ALONE:
            del self._left_alone[next(iter(self._left_alone))]

    def slot_freed(self, job: ClaimedJob) -> None:
        """The job has ended; telling it twice makes no second slot."""
        if self._limiter.ended(job.lease_no):
            self._hungry = True
        if self.free >= self._enough or not self.running:
            self._wake.set()
        elif self._hungry and self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER, self._gathered)

    def hold(self, why: Hold) -> None:
        """Claims nothing until `release` for the same reason, and for every other one."""
        self._held.add(why)

    def release(self, why: Hold) -> None:
        self._held.discard(why)
        self.hint()

    def stop(self) -> None:
        """No claim is sent from now on; one in flight ends and hands its rows to `start`."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claims until `stop`."""
        failures = 0
        while await self._worth_a_claim():
            try:
                await self.claim()
            except Exception as error:  # noqa: BLE001 - the loop outlives whatever the database does
                failures += 1
                self._trouble.failed("jobs.worker.tick-failed", "claiming", error)
                self._hungry = True
                await self._nap(self._backoff.after(failures), unless=lambda: self._stopping)
            else:
                failures = 0
                self._trouble.worked("claiming")

    async def run_until_idle(self) -> None:
        """Claims until nothing is due, running or unsettled here; a failing database raises."""
        self._hungry = True
        while not self._stopping:
            while self._hungry and self.free and not self._stopping:
                await self.claim()
            if not self.running and not self._settler.pending and not self._hungry:
                return
            if self.running:
                await self._nap(self._poll)
            else:
                await self._settler.drained()
            self._hungry = True

    async def claim(self) -> int:
        """One claim for all free slots; how many rows it brought."""
        await self._settler.below(self._limiter.most + BACKLOG)
        if self._stopping:
            return 0
        free = min(self.free, MOST)
        hints = self._hints
        if len(self._queues) > 1:
            self._queues.append(self._queues.pop(0))
        ask = ClaimAsk(
            self._worker_id,
            self._limiter.queues(self._queues, free),
            self._names,
            free,
            self._lease,
            frozenset(self._left_alone),
            self._caps.current,
            self._limiter.tenants(),
            self._limiter.fair,
        )
        self._hungry = False
        sent = time.monotonic()
        jobs = await self._driver.claim(ask)
        self._trouble.answered()
        self._tally.asked(time.monotonic() - sent)
        self._hungry = self._hungry or len(jobs) >= free or self._hints != hints
        self._tell_limits(jobs)
        if jobs:
            self._due.served()
            self._tally.claimed()
            for job in jobs:
                self._tally.started(job.queue, job.claimed_at - job.run_at)
            self._start(jobs, (jobs[0].sent or sent) + self._good_for)
        else:
            self._due.changed()
        return len(jobs)

    def _tell_limits(self, jobs: Sequence[ClaimedJob]) -> None:
        """Counts what was claimed, and says so when tenants are at a limit that were not."""
        self._limiter.started(jobs)
        before, self.limited = self.limited, self._limiter.limited()
        if self.limited and not before:
            self._on_limit()

    async def _worth_a_claim(self) -> bool:
        """Waits until slots are free and work may be there; False when stopping."""
        poll_at = time.monotonic() + self._poll * random.uniform(1.0, 1.2)  # noqa: S311 - keeps processes apart
        while not self._stopping:
            free = 0 if self._held else self.free
            if self._hungry and (free >= self._enough or (free and self._gathering is None)):
                return True
            if free and not self._hungry:
                await self._learn_due()
                self._opens = min(
                    (at for at in (self._opens, self._limiter.opens_at()) if at is not None), default=None
                )
                wake_at = min(at for at in (poll_at, self._due.at, self._opens) if at is not None)
                wait = wake_at - time.monotonic()
                if wait > 0:
                    await self._nap(wait)
                else:
                    self._pass_by(time.monotonic())
                    self._hungry = True
            else:
                await self._nap(None)
        return False

    async def _next_due(self) -> timedelta | None:
        open_queues = [queue for queue, room in self._limiter.queues(self._queues, 1).items() if room > 0]
        if not open_queues:
            return None
        tenants = self._limiter.tenants()
        return await self._driver.next_due(open_queues, self._names, caps=self._caps.current, tenants=tenants)

    async def _learn_due(self) -> None:
        try:
            await self._due.learn()
        except Exception as error:  # noqa: BLE001 - the poll finds what is due all the same
            self._trouble.failed("jobs.worker.tick-failed", "asking for the next due job", error)
        else:
            self._trouble.worked("asking for the next due job")

    def _pass_by(self, now: float) -> None:
        """Forgets times that have come."""
        self._due.pass_by(now)
        if self._opens is not None and self._opens <= now:
            self._opens = None

    def _gathered(self) -> None:
        self._gathering = None
        self._wake.set()

    async def _nap(self, seconds: float | None, unless: Callable[[], bool] | None = None) -> None:
        """Sleeps until woken; with `unless`, only its truth ends the sleep early."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        timer = None if until is None else loop.call_at(until, self._wake.set)
        try:
            while True:
                self._wake.clear()
                if unless is not None and unless():
                    return
                await self._wake.wait()
                if unless is None or unless() or (until is not None and loop.time() >= until):
                    return
        finally:
            if timer is not None:
                timer.cancel()
