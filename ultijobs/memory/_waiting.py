"""Rows that wait to be claimed, in claim order, so that a claim costs what it takes and not what lies behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import TypeAlias
from uuid import UUID

from ultijobs.memory._rows import Row

__all__ = ["CAPPED", "Waiting"]

CAPPED = "n:"
"""Lanes that begin so belong to jobs with a cap across the fleet; only who holds a slot may claim from them."""

_Due: TypeAlias = tuple[int, datetime, UUID]
"""Minus priority, `run_at`, id: the claim order."""

_Later: TypeAlias = tuple[datetime, UUID, int]


@dataclass(slots=True)
class _Line:
    """Of one queue and name. An entry may be stale: its row is looked at before it counts."""

    due: list[_Due] = field(default_factory=list[_Due])
    later: list[_Later] = field(default_factory=list[_Later])

    def ripen(self, now: datetime) -> None:
        while self.later and self.later[0][0] <= now:
            run_at, id, rank = heappop(self.later)  # noqa: A001 - the word of the field
            heappush(self.due, (rank, run_at, id))


class Waiting:
    """The claim index of the store in memory. Rows are added whenever they begin to wait, and never removed by hand."""

    def __init__(self, rows: Mapping[UUID, Row]) -> None:
        self._rows = rows
        self._lines: dict[tuple[str, str], _Line] = {}

    def add(self, row: Row) -> None:
        if row.claimable and not row.lane.startswith(CAPPED):
            line = self._lines.setdefault((row.queue, row.name), _Line())
            heappush(line.later, (row.run_at, row.id, -row.priority))

    def take(
        self, queue: str, names: Iterable[str], *, now: datetime, limit: int, skip: Collection[UUID] = ()
    ) -> list[Row]:
        """The first `limit` due rows, which leave the index: the caller claims them."""
        lines = [line for name in names if (line := self._lines.get((queue, name))) is not None]
        for line in lines:
            line.ripen(now)
        taken: dict[UUID, Row] = {}
        skipped: list[tuple[_Line, _Due]] = []
        while len(taken) < limit and (open_lines := [line for line in lines if line.due]):
            line = min(open_lines, key=lambda each: each.due[0])
            entry = heappop(line.due)
            row = self._rows.get(entry[2])
            if row is None or not row.claimable or row.run_at != entry[1]:
                continue
            if row.id in skip:
                skipped.append((line, entry))
            else:
                taken[row.id] = row
        for line, entry in skipped:
            heappush(line.due, entry)
        return list(taken.values())
