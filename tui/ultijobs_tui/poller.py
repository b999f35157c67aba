"""The one loop that reads: single flight, a budget on the database's time, backoff that never gives up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.link import Link

__all__ = ["Budget", "Fetches", "Poller"]


class Fetches(Protocol):
    async def fetch(self, needs: Needs) -> Frame: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be asked, in seconds. A refresh that took t is followed by a pause of at least `duty` times t."""

    interval: float = 1.0
    min_gap: float = 0.25
    """Between two refreshes, however many hints arrive."""
    deadline: float = 5.0
    duty: float = 20.0
    blurred: float = 10.0
    """The interval while the terminal has no focus."""


class Poller:
    """Asks `ask()` what the visible screen needs, fetches it, hands it to `on_frame`.

    `hint` is for news from elsewhere and respects the budget; `poke` is for the operator's own key and waits for
    `min_gap` alone. A fetch for a screen that was left is cancelled, its answer never shown.
    """

    def __init__(
        self,
        source: Fetches,
        link: Link,
        *,
        ask: Callable[[], Needs],
        on_frame: Callable[[Frame], None],
        on_link: Callable[[], None],
        budget: Budget | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._link = link
        self._ask = ask
        self._on_frame = on_frame
        self._on_link = on_link
        self.budget = budget or Budget()
        self._monotonic = monotonic
        self._wake = asyncio.Event()
        self._poked = asyncio.Event()
        self._flight: asyncio.Task[Frame] | None = None
        self._asked: Needs | None = None
        self.blurred = False
        self.fetches = 0
        self.delay = self.budget.interval
        """Seconds between the last refresh and the next: longer than the interval when the budget asks for it."""
        self.share = 0.0
        """The part of the time that the last refresh and its pause gave to the database."""

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            if self._link.frozen:
                await self._poked.wait()
                self._poked.clear()
                continue
            self._wake.clear()
            self._poked.clear()
            delay, floor = await self._once()
            await self._pause(delay, floor)

    def hint(self) -> None:
        """Something changed; refresh when the budget allows."""
        self._wake.set()

    def poke(self) -> None:
        """The operator asks, or the visible screen changed: refresh now, and drop what is under way for another."""
        flight = self._flight
        if flight is not None and (self._link.frozen or self._safe_ask() != self._asked):
            flight.cancel()
        self._poked.set()

    async def _once(self) -> tuple[float, float]:
        began = self._monotonic()
        budget = self.budget
        try:
            frame = await self._fetch()
            if frame is None:
                return 0.0, 0.0
            self._link.ok()
            self._on_frame(frame)
        except Exception as error:  # noqa: BLE001 - the loop outlives whatever a refresh raises, and shows it
            delay = self._link.failed(error)
            self._on_link()
            return max(budget.min_gap, delay), budget.min_gap
        spent = self._monotonic() - began
        floor = max(budget.min_gap, budget.duty * spent)
        delay = max(budget.blurred if self.blurred else budget.interval, floor)
        self.delay = delay
        self.share = spent / (spent + delay)
        self._on_link()
        return delay, floor

    async def _fetch(self) -> Frame | None:
        """One fetch within the deadline; None when its screen was left. What hangs is cancelled and not waited for."""
        self._asked = self._ask()
        self.fetches += 1
        flight = self._flight = asyncio.ensure_future(self._source.fetch(self._asked))
        flight.add_done_callback(_consume)
        try:
            await asyncio.wait({flight}, timeout=self.budget.deadline)
            if not flight.done():
                raise TimeoutError
            return None if flight.cancelled() else flight.result()
        finally:
            flight.cancel()
            self._flight = None

    async def _pause(self, delay: float, floor: float) -> None:
        """Waits `delay`; a hint ends it after `floor`, a poke after `min_gap`."""
        began = self._monotonic()
        poked = asyncio.ensure_future(self._poked.wait())
        woken = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({poked}, timeout=floor)
            if not poked.done():
                left = max(0.0, delay - floor)
                await asyncio.wait({poked, woken}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            gap = min(delay, self.budget.min_gap) - (self._monotonic() - began)
            if gap > 0:
                await asyncio.sleep(gap)
        finally:
            for waiter in (poked, woken):
                waiter.cancel()

    def _safe_ask(self) -> Needs | None:
        with contextlib.suppress(Exception):
            return self._ask()
        return None


def _consume(flight: asyncio.Task[Frame]) -> None:
    """An answer that comes after its time is dropped without a line on the terminal."""
    if not flight.cancelled():
        flight.exception()
