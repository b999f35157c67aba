"""Spans of time drawn as cells between two instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

__all__ = ["Scale", "bar"]


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
