"""The last minutes of the overview, kept in a ring: where numbers are going. Bounded, in memory, pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ultijobs.inspection import Overview

__all__ = ["History"]

_KEEP: Final = 900
_TREND_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Sample:
    at: datetime
    totals: dict[str, int]
    exact: frozenset[str]


class History:
    """Overviews as they came, one a second at the most, for a quarter of an hour."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=_KEEP)

    def add(self, overview: Overview) -> None:
        if self._samples and (overview.as_of - self._samples[-1].at).total_seconds() < 0.9:  # noqa: PLR2004 - one a second
            return
        totals = overview.stats.totals
        self._samples.append(
            _Sample(
                overview.as_of,
                {state: count.value for state, count in totals.items()},
                frozenset(state for state, count in totals.items() if count.kind == "exact"),
            )
        )

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

    def values(self, state: str, buckets: int) -> Sequence[int]:
        """The count of `state` over the ring, as at most `buckets` values."""
        samples = [s.totals.get(state, 0) for s in self._samples]
        if len(samples) <= buckets:
            return samples
        step = len(samples) / buckets
        return [samples[int((i + 1) * step) - 1] for i in range(buckets)]

    def minutes(self) -> float:
        """How long the ring reaches back."""
        if len(self._samples) < 2:  # noqa: PLR2004 - as above
            return 0.0
        return (self._samples[-1].at - self._samples[0].at).total_seconds() / 60
