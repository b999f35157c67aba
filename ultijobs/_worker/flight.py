"""One claimed job in flight, from its claim until its settlement is durable, and the roster of all of them."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Coroutine, Iterable
from enum import Enum
from types import CodeType
from typing import Any, Protocol
from uuid import UUID

from ultijobs._execution.ending import Ending
from ultijobs._queue.claims import Beat, ClaimedJob, Settlement, Verdict
from ultijobs._queue.records import Outcome

__all__ = ["Body", "Flight", "Phase", "Roster", "begun", "outcome_of"]


class Body(Protocol):
    """What the worker needs of the attempt that runs the job. `due` and `beat` are called from the keeper's thread."""

    @property
    def due(self) -> float:
        """The monotonic time at which `check` has something to do."""
        ...

    @property
    def unreadable(self) -> bool:
        """True when the run holds a newer release's record, so that this process must leave the job alone."""
        ...

    @property
    def abandoned(self) -> bool:
        """True while the body goes on although its grace is over."""
        ...

    @property
    def replayed(self) -> int:
        """How many steps came from storage."""
        ...

    @property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the steps that were executed, and of those that came from storage."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What the attempt failed with, once it has ended."""
        ...

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that run the job's code."""
        ...

    def beat(self, now: float) -> Beat | None:
        """The renewal to send; None when the lease is to lapse."""
        ...

    def check(self) -> None: ...
    def cancel(self, why: Ending) -> None: ...
    def hand_back(self) -> Settlement | None: ...
    async def run(self) -> Settlement | None: ...
    async def confirm(self, verdict: Verdict) -> None: ...


class Phase(Enum):
    """Where a flight is; it only goes forward, and never from `LOST` or `CANCELLED` to `SETTLING`."""

    HELD = 0
    LOST = 1
    CANCELLED = 2
    SETTLING = 3


def outcome_of(phase: Phase) -> Outcome:
    """Of an attempt that ended without a settlement."""
    return Outcome.CANCELLED if phase is Phase.CANCELLED else Outcome.LOST


class Flight:
    """`ends` is the monotonic time up to which the lease is surely ours."""

    __slots__ = ("body", "code", "ends", "job", "phase", "task", "watched")

    def __init__(self, job: ClaimedJob, body: Body, ends: float, code: CodeType | None = None) -> None:
        self.job = job
        self.body = body
        self.ends = ends
        self.code = code
        self.phase = Phase.HELD
        self.task: asyncio.Task[None] | None = None
        self.watched = False


def begun(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
    """A task that has run up to its first wait, where Python can do that (3.12); else it runs with the next turn."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)


class Roster:
    """The flights of a process. Its lock makes each change of phase one step, seen alike by loop and keeper."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[int, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def add(self, flights: Iterable[Flight]) -> None:
        with self._lock:
            for flight in flights:
                self._flights[flight.job.lease_no] = flight

    def remove(self, flight: Flight) -> None:
        with self._lock:
            self._flights.pop(flight.job.lease_no, None)

    def all(self) -> list[Flight]:
        with self._lock:
            return list(self._flights.values())

    def of(self, lease_no: int) -> Flight | None:
        return self._flights.get(lease_no)

    def held(self, lease_no: int) -> bool:
        """True while a write of this claim may still be sent."""
        flight = self._flights.get(lease_no)
        return flight is not None and flight.phase is Phase.HELD and time.monotonic() < flight.ends

    def held_run(self, run_id: UUID) -> bool:
        """`held`, of the claim that runs this run."""
        return any(self.held(flight.job.lease_no) for flight in self.all() if flight.job.run_id == run_id)

    def move(self, flight: Flight, to: Phase) -> bool:
        """True when the flight was `HELD` and is `to` now: exactly one caller gets it."""
        with self._lock:
            if flight.phase is not Phase.HELD:
                return False
            flight.phase = to
            return True

    def renewed(self, flight: Flight, ends: float) -> None:
        with self._lock:
            if flight.phase in {Phase.HELD, Phase.SETTLING}:
                flight.ends = max(flight.ends, ends)
