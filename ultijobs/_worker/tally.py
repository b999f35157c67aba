"""What a worker counts: outcomes and replayed steps since its start, and when it last asked, claimed and settled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.records import Outcome

__all__ = ["COUNTERS", "Tally"]

COUNTERS: Final[dict[Outcome, str]] = {
    Outcome.OK: "done",
    Outcome.RETRIED: "retried",
    Outcome.DEAD: "dead",
    Outcome.FAILED: "failed",
    Outcome.LOST: "lost",
    Outcome.CANCELLED: "cancelled",
    Outcome.SUSPENDED: "suspended",
    Outcome.RETURNED: "returned",
}

STEPS_REPLAYED: Final = "steps_replayed"
ENDED: Final = tuple(outcome for outcome in COUNTERS if outcome not in {Outcome.SUSPENDED, Outcome.RETURNED})


class Tally:
    """Totals of one process, here and in its metrics; the loop and the lease keeper's thread both add to them."""

    def __init__(self, metrics: Metrics | None = None, queues: Iterable[str] = ()) -> None:
        self._metrics = Metrics() if metrics is None else metrics
        self._lock = threading.Lock()
        self._counts = dict.fromkeys((*COUNTERS.values(), STEPS_REPLAYED), 0)
        self._asked = time.monotonic()
        self._claimed: float | None = None
        self._settled: float | None = None

        # A rate can be taken only of a counter that was there at 0.
        for each in (series.EVENTS_PUBLISHED, series.EVENTS_DELIVERED):
            self._metrics.add(each, by=0)
        for queue in queues:
            self._metrics.add(series.LEASES_LOST, queue, by=0)
            for outcome in ENDED:
                self._metrics.add(series.JOBS, queue, outcome.value, by=0)

    def ended(self, outcome: Outcome, queue: str) -> None:
        """Counts an outcome; a loss gets into the metrics with `told_lost`, which is once in the fleet."""
        with self._lock:
            self._counts[COUNTERS[outcome]] += 1
        if outcome is Outcome.SUSPENDED:
            self._metrics.add(series.JOBS_SUSPENDED, queue)
        elif outcome is Outcome.RETURNED:
            self._metrics.add(series.JOBS_RETURNED, queue)
        elif outcome is not Outcome.LOST:
            self._metrics.add(series.JOBS, queue, outcome.value)

    def told_lost(self, queue: str) -> None:
        """This process is the one in the fleet that counts this loss."""
        self._metrics.add(series.LEASES_LOST, queue)
        self._metrics.add(series.JOBS, queue, Outcome.LOST.value)

    def took_over(self, queue: str) -> None:
        """A claim of a worker that vanished without a word was ended here."""
        with self._lock:
            self._counts[COUNTERS[Outcome.LOST]] += 1
        self.told_lost(queue)

    def ran(self, queue: str, seconds: float) -> None:
        """The code of an attempt has ended."""
        self._metrics.observe(series.RUN_SECONDS, seconds, queue)

    def asked(self, seconds: float) -> None:
        """A claim was answered, with rows or without."""
        self._asked = time.monotonic()
        self._metrics.observe(series.CLAIM_SECONDS, seconds)

    def started(self, queue: str, waited: timedelta) -> None:
        """A job that had been due for so long was claimed."""
        self._metrics.observe(series.WAIT_SECONDS, waited.total_seconds(), queue)

    def replayed(self, steps: int) -> None:
        """An attempt took so many steps from storage."""
        if steps:
            with self._lock:
                self._counts[STEPS_REPLAYED] += steps

    def claimed(self) -> None:
        self._claimed = time.monotonic()

    def settled(self) -> None:
        self._settled = time.monotonic()

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    @property
    def asked_ago_ms(self) -> int:
        """Since a claim was last answered; since the start when none was."""
        return int((time.monotonic() - self._asked) * 1000)

    @property
    def claimed_ago_ms(self) -> int | None:
        return _ago(self._claimed)

    @property
    def settled_ago_ms(self) -> int | None:
        return _ago(self._settled)


def _ago(at: float | None) -> int | None:
    return None if at is None else int((time.monotonic() - at) * 1000)
