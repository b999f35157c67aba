"""Watches the loop that runs the handlers from outside: measures its lag and names the job that blocks it."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import traceback
from types import FrameType
from typing import Final

from ultijobs._log import emit
from ultijobs._worker.flight import Flight, Roster

__all__ = ["BLOCKED_AFTER", "LoopWatch"]

BLOCKED_AFTER: Final = 1.0
WEDGED_AFTER: Final = 10.0
STACK_LINES: Final = 12


class LoopWatch:
    """`check` runs on the keeper's thread, a few times a second; made on the thread of the watched loop."""

    def __init__(self, roster: Roster, worker_id: str, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        self._roster = roster
        self._worker_id = worker_id
        self._loop = loop
        self._thread_id = thread_id
        self._asked: float | None = None
        self._told = False
        self._worst = 0.0
        self._latest = 0.0

    def check(self, now: float) -> None:
        if self._asked is None:
            self._asked, self._told = now, False
            self._loop.call_soon_threadsafe(self._answer)
        elif now - self._asked > BLOCKED_AFTER and not self._told:
            self._told = True
            self._tell(now - self._asked)

    def lag(self) -> float:
        """The longest wait for a turn of the loop since the last call, in seconds."""
        asked = self._asked
        current = 0.0 if asked is None else time.monotonic() - asked
        worst, self._worst = max(self._worst, current), 0.0
        return worst

    @property
    def behind(self) -> float:
        """How long the loop took to its latest turn, or has taken by now, in seconds."""
        asked = self._asked
        return self._latest if asked is None else max(self._latest, time.monotonic() - asked)

    @property
    def blocked(self) -> bool:
        """True while the loop has not turned for a second and more."""
        asked = self._asked
        return asked is not None and time.monotonic() - asked > BLOCKED_AFTER

    @property
    def wedged(self) -> bool:
        """True while handlers keep the process from its work: the loop stands, or a body goes on past its deadline."""
        asked = self._asked
        if asked is not None and time.monotonic() - asked > WEDGED_AFTER:
            return True
        return any(flight.body.abandoned for flight in self._roster.all())

    def _answer(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            self._latest = time.monotonic() - asked
            self._worst = max(self._worst, self._latest)

    def _tell(self, lasted: float) -> None:
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the only view of another thread's stack
        flight = self._blocker(frame)
        if flight is not None:
            if flight.watched:
                return
            flight.watched = True
        stack = "".join(traceback.format_stack(frame)[-STACK_LINES:]) if frame is not None else ""
        job = None if flight is None else flight.job
        who = "code that is no job's" if job is None else f"job {job.name} ({job.id})"
        emit(
            logging.WARNING,
            "jobs.worker.loop-blocked",
            f"{who} has blocked the event loop for {lasted:.1f} s; run blocking code in a `def` handler or a thread",
            worker_id=self._worker_id,
            job_id=None if job is None else job.id,
            run_id=None if job is None else job.run_id,
            name=None if job is None else job.name,
            attempt=None if job is None else job.attempt,
            stack=stack,
        )

    def _blocker(self, frame: FrameType | None) -> Flight | None:
        """The flight one of whose tasks holds the loop, or whose handler is on the stack."""
        task = asyncio.current_task(self._loop)
        flights = self._roster.all()
        for flight in flights:
            if task is not None and task in flight.body.tasks:
                return flight
        codes = {flight.code: flight for flight in flights if flight.code is not None}
        while frame is not None:
            if frame.f_code in codes:
                return codes[frame.f_code]
            frame = frame.f_back
        return flights[0] if len(flights) == 1 else None
