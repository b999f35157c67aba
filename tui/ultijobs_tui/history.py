"""The last minutes of the overview, kept in a ring: where numbers are going. Bounded, in memory, pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from sys import intern
from typing import Final
from uuid import UUID

from ultijobs.inspection import Cause, Overview, QueueRow, WorkerRow

__all__ = ["History"]

_KEEP: Final = 900
_APART: Final = 0.9
_TREND_SECONDS: Final = 60.0
_RATE_SECONDS: Final = 300.0
_RATE_LEAST: Final = 30.0
_COUNTED_LEAST: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Sample:
    at: datetime
    totals: dict[str, int]
    exact: frozenset[str]
    settled: Mapping[str, int]
    """Attempts that ended since the sample before, by outcome."""
    causes: Mapping[str, int]
    """Jobs of each cause whose count is exact."""


class History:
    """Overviews as they came, one a second at the most, for a quarter of an hour."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=_KEEP)
        self._counters: Mapping[str, Mapping[str, int]] = {}
        self._queues: deque[tuple[datetime, dict[str, int]]] = deque(maxlen=_KEEP)
        self._passes: deque[tuple[datetime, dict[UUID, int]]] = deque(maxlen=_KEEP)
        self._workers: deque[tuple[datetime, dict[UUID, Mapping[str, int]]]] = deque(maxlen=_KEEP)

    def add(self, overview: Overview) -> None:
        if self._samples and (overview.as_of - self._samples[-1].at).total_seconds() < _APART:
            return
        counts = overview.stats.totals
        totals = {state: count.value for state, count in counts.items()}
        exact = frozenset(state for state, count in counts.items() if count.kind == "exact")
        settled = _settled(self._counters, overview.counters)
        if self._samples and "dead" in exact & self._samples[-1].exact:
            # What took its worker down was settled by nobody: the rows know.
            grown = totals["dead"] - self._samples[-1].totals["dead"]
            settled = {**settled, "dead": max(grown, settled.get("dead", 0))}
        found = [line.cause for line in overview.stuck if line.cause is not None]
        causes = {_key(cause): cause.count.value for cause in found if cause.count.kind == "exact"}
        self._samples.append(_Sample(overview.as_of, totals, exact, settled, causes))
        self._counters = overview.counters
        self.add_queues(overview.as_of, overview.queues)

    def add_queues(self, as_of: datetime, rows: Sequence[QueueRow]) -> None:
        if self._queues and (as_of - self._queues[-1][0]).total_seconds() < _APART:
            return
        self._queues.append((as_of, {row.queue: row.ready.value for row in rows if row.ready.kind == "exact"}))

    def add_workers(self, as_of: datetime, rows: Sequence[WorkerRow]) -> None:
        if self._workers and (as_of - self._workers[-1][0]).total_seconds() < _APART:
            return
        self._workers.append((as_of, {row.instance: row.counters for row in rows}))

    def add_passes(self, as_of: datetime, rows: Mapping[UUID, int]) -> None:
        """How many rows each live pass of a backfill has written."""
        if self._passes and (as_of - self._passes[-1][0]).total_seconds() < _APART:
            return
        self._passes.append((as_of, dict(rows)))

    def pass_rates(self, run: UUID, buckets: int) -> Sequence[float]:
        """Rows a second of one pass over what the ring holds of it, as at most `buckets` values."""
        return _rates([(at, rows[run]) for at, rows in self._passes if run in rows], buckets)

    def dying_per_minute(self, cause: Cause) -> float | None:
        """How many jobs more a cause has than a minute ago at the most; None before ten seconds are known."""
        seen = self._counted(cause)
        if not seen:
            return None
        last_at, last = seen[-1]
        first_at, first = next(s for s in seen if (last_at - s[0]).total_seconds() <= _TREND_SECONDS)
        seconds = (last_at - first_at).total_seconds()
        return None if seconds < _COUNTED_LEAST else max(0, last - first) * 60 / seconds

    def dying(self, cause: Cause, buckets: int) -> Sequence[float]:
        """The same over what the ring holds, as at most `buckets` values."""
        return _rates(self._counted(cause), buckets)

    def _counted(self, cause: Cause) -> list[tuple[datetime, int]]:
        key = _key(cause)
        return [(sample.at, sample.causes[key]) for sample in self._samples if key in sample.causes]

    def worker_per_minute(self, instance: UUID, outcomes: Sequence[str]) -> float | None:
        """How many attempts a process ended so, over a minute at the most; None before ten seconds are known."""
        seen = [(at, counters[instance]) for at, counters in self._workers if instance in counters]
        if not seen:
            return None
        last_at, last = seen[-1]
        first_at, first = next(s for s in seen if (last_at - s[0]).total_seconds() <= _TREND_SECONDS)
        seconds = (last_at - first_at).total_seconds()
        if seconds < _COUNTED_LEAST:
            return None
        return sum(max(0, last.get(name, 0) - first.get(name, 0)) for name in outcomes) * 60 / seconds

    def ready_per_minute(self, queue: str) -> float | None:
        """How fast the due jobs of a queue grow (+) or shrink (-), over five minutes; None before 30 s are known."""
        seen = [(at, counts[queue]) for at, counts in self._queues if queue in counts]
        if not seen:
            return None
        last_at, last = seen[-1]
        first_at, first = next(s for s in seen if (last_at - s[0]).total_seconds() <= _RATE_SECONDS)
        seconds = (last_at - first_at).total_seconds()
        return None if seconds < _RATE_LEAST else (last - first) * 60 / seconds

    def ready_values(self, queue: str, buckets: int) -> Sequence[int]:
        return _thinned([counts[queue] for _, counts in self._queues if queue in counts], buckets)

    def trend(self, state: str) -> str:
        """`↑`, `↓` or nothing: against a minute ago, when both counts are exact."""
        if len(self._samples) < 2:  # noqa: PLR2004 - a trend needs two
            return ""
        last = self._samples[-1]
        first = next(s for s in self._samples if (last.at - s.at).total_seconds() <= _TREND_SECONDS)
        if state not in first.exact or state not in last.exact:
            return ""
        change = last.totals[state] - first.totals[state]
        return "↑" if change > 0 else "↓" if change < 0 else ""

    def settled_per_minute(self, outcome: str) -> float | None:
        """How many attempts ended so in the last minute, by the workers' own counts; None before ten seconds."""
        if not self._samples:
            return None
        last = self._samples[-1]
        recent = [s for s in self._samples if (last.at - s.at).total_seconds() <= _TREND_SECONDS]
        seconds = (last.at - recent[0].at).total_seconds()
        if seconds < _COUNTED_LEAST:
            return None
        return sum(s.settled.get(outcome, 0) for s in recent[1:]) * 60 / seconds

    def settled(self, outcome: str, buckets: int) -> Sequence[float]:
        """The same over the whole ring, as the means of at most `buckets` parts."""
        counts = [s.settled.get(outcome, 0) for s in self._samples][1:]
        if len(counts) <= buckets:
            return counts
        size = len(counts) / buckets
        parts = [counts[int(i * size) : int((i + 1) * size)] for i in range(buckets)]
        return [sum(part) / len(part) for part in parts]

    def values(self, state: str, buckets: int) -> Sequence[int]:
        """The count of `state` over the ring, as at most `buckets` values."""
        return _thinned([s.totals.get(state, 0) for s in self._samples], buckets)

    def minutes(self) -> float:
        """How long the ring reaches back."""
        if len(self._samples) < 2:  # noqa: PLR2004 - as above
            return 0.0
        return (self._samples[-1].at - self._samples[0].at).total_seconds() / 60


def _settled(before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """What the processes known at both moments ended in between; a new one counts from its second heartbeat."""
    total: dict[str, int] = {}
    for instance, counts in after.items():
        if instance in before:
            for outcome, count in counts.items():
                total[outcome] = total.get(outcome, 0) + max(0, count - before[instance].get(outcome, 0))
    return total


def _key(cause: Cause) -> str:
    return intern(f"{cause.stop_reason}/{cause.fingerprint}/{cause.error_code}")


def _rates(seen: Sequence[tuple[datetime, int]], buckets: int) -> Sequence[float]:
    """By how much a count grew each second, in as many spans of the same number of looks."""
    parts = min(buckets, len(seen) - 1)
    marks = [seen[round(n * (len(seen) - 1) / parts)] for n in range(parts + 1)] if parts > 0 else []
    return [
        max(0, count - before) / max(_APART, (at - since).total_seconds())
        for (since, before), (at, count) in pairwise(marks)
    ]


def _thinned(values: Sequence[int], buckets: int) -> Sequence[int]:
    if len(values) <= buckets:
        return values
    step = len(values) / buckets
    return [values[int((i + 1) * step) - 1] for i in range(buckets)]
