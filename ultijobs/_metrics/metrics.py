"""`Metrics`: the counters, gauges and histograms of one process, cheap to write from any thread."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ultijobs._metrics.series import SERIES, Series
from ultijobs._text import clip, inert

__all__ = ["MOST", "OTHERS", "Distribution", "Metrics"]

MOST: Final = 200
"""Label sets of one series. Queues and tasks may be named by data; what comes after these is counted as others."""
OTHERS: Final = "(others)"
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram as it is exported: cumulative counts per upper bound, the last one infinity, and the sum."""

    counts: tuple[tuple[float, int], ...]
    sum: float


class _Cell:
    """A number, or the counts of a histogram with its sum."""

    __slots__ = ("counts", "value")

    def __init__(self, buckets: int) -> None:
        self.value = 0.0
        self.counts = [0] * (buckets + 1) if buckets else None


class Metrics:
    """Values since the start of the process. Labels are bounded in number and in length, and inert."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._cells: Final[dict[Series, dict[tuple[str, ...], _Cell]]] = {series: {} for series in SERIES}
        self._until: Final[dict[Series, float]] = {}

    def add(self, series: Series, *labels: str, by: int = 1) -> None:
        """Counts; with `by=0` the series is exported as 0 from now on."""
        with self._lock:
            cell = self._cells[series].get(labels) or self._cell(series, labels)
            cell.value += by

    def observe(self, series: Series, value: float, *labels: str) -> None:
        """Adds one value to a histogram; a negative one counts as 0."""
        value = max(value, 0.0)
        with self._lock:
            cell = self._cells[series].get(labels) or self._cell(series, labels)
            cell.value += value
            if cell.counts is not None:
                cell.counts[bisect_left(series.buckets, value)] += 1

    def set(self, series: Series, value: float, *labels: str) -> None:
        with self._lock:
            (self._cells[series].get(labels) or self._cell(series, labels)).value = value

    def replace(
        self,
        series: Series,
        values: Mapping[tuple[str, ...], float],
        *,
        until: float = math.inf,
        most: bool = False,
    ) -> None:
        """Exports these values alone, up to the monotonic time `until`; then none.

        Names that look alike once they are inert are added up; with `most` the largest counts instead.
        """
        with self._lock:
            self._until[series] = until
            self._cells[series] = {}
            for labels, value in values.items():
                cell = self._cell(series, labels)
                cell.value = max(cell.value, value) if most else cell.value + value

    def read(self) -> dict[Series, dict[tuple[str, ...], float | Distribution]]:
        """All values at one moment."""
        now = time.monotonic()
        with self._lock:
            return {
                series: {labels: _shown(series, cell) for labels, cell in cells.items()}
                if now < self._until.get(series, math.inf)
                else {}
                for series, cells in self._cells.items()
            }

    def _cell(self, series: Series, labels: tuple[str, ...]) -> _Cell:
        cells = self._cells[series]
        shown = tuple(inert(clip(label, _LONGEST), line=True) for label in labels)
        if shown not in cells and len(cells) >= MOST:
            shown = (OTHERS, *shown[1:])
        return cells.setdefault(shown, _Cell(len(series.buckets)))


def _shown(series: Series, cell: _Cell) -> float | Distribution:
    if cell.counts is None:
        return cell.value
    seen = 0
    counts: list[tuple[float, int]] = []
    for bound, count in zip((*series.buckets, math.inf), cell.counts, strict=True):
        seen += count
        counts.append((bound, seen))
    return Distribution(tuple(counts), cell.value)
