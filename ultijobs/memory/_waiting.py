"""Rows that wait to be claimed, in claim order, so that a claim costs what it takes and not what lies behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import TypeAlias
from uuid import UUID

from ultijobs.memory._rows import Row

__all__ = ["Stream", "Waiting"]

_Place: TypeAlias = tuple[datetime, UUID]
"""`run_at` and id: the order within a stream."""

_Key: TypeAlias = tuple[str, str, int]
"""Queue, lane and rank."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Due rows of one queue, lane and rank; `head` is the first of them."""

    queue: str
    lane: str
    rank: int
    head: _Place
    head_tenant: str | None


@dataclass(slots=True)
class _Line:
    """Of one stream and name. An entry may be stale: its row is looked at before it counts."""

    due: list[_Place] = field(default_factory=list[_Place])
    later: list[_Place] = field(default_factory=list[_Place])

    def ripen(self, now: datetime) -> None:
        while self.later and self.later[0][0] <= now:
            heappush(self.due, heappop(self.later))


class Waiting:
    """The claim index of the store in memory. Rows are added whenever they begin to wait, and never removed by hand."""

    def __init__(self, rows: Mapping[UUID, Row]) -> None:
        self._rows = rows
        self._lines: dict[_Key, dict[str, _Line]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, row: Row) -> None:
        if row.claimable:
            names = self._lines.setdefault((row.queue, row.lane, -row.priority), {})
            heappush(names.setdefault(row.name, _Line()).later, (row.run_at, row.id))

    def streams(self, queues: Collection[str], now: datetime) -> list[Stream]:
        """Those with a due row. What is used up is forgotten."""
        found: list[Stream] = []
        for key in [key for key in self._lines if key[0] in queues]:
            names = self._lines[key]
            heads = [head for name in list(names) if (head := self._head(names, name, key[1], now)) is not None]
            if heads:
                first = min(heads)
                found.append(Stream(*key, first, self._rows[first[1]].tenant_id))
            elif not names:
                del self._lines[key]
        return found

    def take(
        self,
        stream: Stream,
        names: Iterable[str],
        *,
        now: datetime,
        limit: int,
        skip: Collection[UUID] = (),
        blocked: Collection[str] = (),
        bare: bool = False,
    ) -> list[Row]:
        """The first `limit` due rows, which leave the index: the caller claims them. `bare`: those of no tenant."""
        lines = self._lines.get((stream.queue, stream.lane, stream.rank), {})
        open_to = [line for name in names if (line := lines.get(name)) is not None]
        for line in open_to:
            line.ripen(now)
        taken: dict[UUID, Row] = {}
        passed: list[tuple[_Line, _Place]] = []
        while len(taken) < limit and (rest := [line for line in open_to if line.due]):
            line = min(rest, key=lambda each: each.due[0])
            entry = heappop(line.due)
            row = self._fresh(entry, stream.lane)
            if row is None:
                continue
            if row.id in skip or row.tenant_id in blocked or (bare and row.tenant_id is not None):
                passed.append((line, entry))
            else:
                taken[row.id] = row
        for line, entry in passed:
            heappush(line.due, entry)
        return list(taken.values())

    def _fresh(self, entry: _Place, lane: str) -> Row | None:
        row = self._rows.get(entry[1])
        waits = row is not None and row.claimable and (row.run_at, row.lane) == (entry[0], lane)
        return row if waits else None

    def _head(self, names: dict[str, _Line], name: str, lane: str, now: datetime) -> _Place | None:
        line = names[name]
        line.ripen(now)
        for heap in (line.due, line.later):
            while heap and self._fresh(heap[0], lane) is None:
                heappop(heap)
        if not line.due and not line.later:
            del names[name]
        return line.due[0] if line.due else None
