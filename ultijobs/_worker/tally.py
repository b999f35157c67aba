"""What a worker counts: outcomes and replayed steps since its start, and when it last claimed and settled."""

from __future__ import annotations

import threading
import time
from typing import Final

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


class Tally:
    """Totals of one process; the loop and the lease keeper's thread both add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys((*COUNTERS.values(), STEPS_REPLAYED), 0)
        self._claimed: float | None = None
        self._settled: float | None = None

    def ended(self, outcome: Outcome) -> None:
        with self._lock:
            self._counts[COUNTERS[outcome]] += 1

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
    def claimed_ago_ms(self) -> int | None:
        return _ago(self._claimed)

    @property
    def settled_ago_ms(self) -> int | None:
        return _ago(self._settled)


def _ago(at: float | None) -> int | None:
    return None if at is None else int((time.monotonic() - at) * 1000)
