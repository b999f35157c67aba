"""Caps of the fleet: which names have one, by this application's declarations and by those of whoever started last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ultijobs._definitions.handle import JobHandle
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry

__all__ = ["Caps", "declared_caps"]


def declared_caps(handles: Iterable[JobHandle[Any]], names: Collection[str]) -> dict[str, int]:
    """Of `names`, those that a handle caps."""
    return {
        handle.name: handle.concurrency for handle in handles if handle.name in names and handle.concurrency is not None
    }


class Caps:
    """The caps that this worker keeps to, a name that has none being in none.

    While two deploys run side by side, both keep to the caps of the one that started last, as the catalogue has them.
    """

    def __init__(
        self, driver: Driver, *, queues: Sequence[str], names: Sequence[str], declared: Mapping[str, int]
    ) -> None:
        self._driver = driver
        self._queues = queues
        self._names = names
        self.current: Mapping[str, int] = dict(declared)

    async def keep(self, catalogue: Iterable[CatalogEntry]) -> int:
        """Takes what the catalogue says, and files the rows that were enqueued under another declaration.

        Answers how many it filed. Raises what the driver raises.
        """
        found: dict[str, int] = {}
        for entry in catalogue:
            cap = entry.declaration.get("concurrency")
            if entry.name in self._names and type(cap) is int and cap > 0:
                found[entry.name] = cap
        self.current = found
        filed = 0
        while more := await self._driver.file(self._queues, self._names, found):
            filed += more
        return filed
