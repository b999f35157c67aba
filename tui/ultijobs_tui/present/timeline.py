"""Spans of time drawn as cells between two instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ultijobs_tui import format as fmt

__all__ = ["Scale", "axis", "bar"]

_STEPS: Final = tuple(
    timedelta(milliseconds=ms)
    for unit, counts in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 3, 6, 12)),
        (86_400_000, (1, 2, 7, 14, 28, 91, 364, 3_640, 36_400)),
    )
    for ms in (unit * count for count in counts)
)
_APART: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scale:
    start: datetime
    end: datetime
    width: int

    def at(self, moment: datetime) -> int:
        """The cell of a moment, clamped to the drawing."""
        whole = (self.end - self.start).total_seconds()
        if whole <= 0:
            return 0
        share = (moment - self.start).total_seconds() / whole
        return max(0, min(self.width - 1, int(share * self.width)))


def bar(spans: Sequence[tuple[datetime, datetime]], scale: Scale, *, waiting: bool = False) -> str:
    """Each span as at least one cell: `▇` for work, `·` for a wait and between the tries of one step."""
    if not spans:
        return ""
    cells = [" "] * scale.width
    first, last = scale.at(spans[0][0]), scale.at(spans[-1][1])
    for i in range(first, last + 1):
        cells[i] = "·"
    if not waiting:
        for start, end in spans:
            for i in range(scale.at(start), scale.at(end) + 1):
                cells[i] = "▇"
    return "".join(cells).rstrip()


def axis(scale: Scale) -> str:
    """The times along the drawing, each beginning at its own cell: times of day, or seconds since the start.

    The first is the start; the others lie on round times, as many as fit beside each other.
    """
    whole = scale.end - scale.start
    brief = whole < timedelta(minutes=1)
    first = f"{scale.start:%H:%M:%S}" if brief else _label(scale.start, whole)
    least = len(first) + _APART
    step = next((step for step in _STEPS if step * scale.width >= whole * least), None)
    if step is None or whole <= timedelta(0):
        return first[: scale.width]
    at = scale.start + step if brief else _EPOCH + ((scale.start - _EPOCH) // step + 1) * step
    drawn = first
    while at <= scale.end:
        label = f"+{fmt.took((at - scale.start) / timedelta(milliseconds=1))}" if brief else _label(at, whole)
        cell = scale.at(at)
        if cell >= len(drawn) + _APART and cell + len(label) <= scale.width:
            drawn = drawn.ljust(cell) + label
        at += step
    return drawn[: scale.width]


def _label(at: datetime, whole: timedelta) -> str:
    if whole < timedelta(minutes=10):
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M}" if whole < timedelta(hours=20) else f"{at:%m-%d %H:%M}"
