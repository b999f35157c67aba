"""Which lanes rows belong to: names that the fleet caps, by whoever started last, and queues of tenants told apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ultijobs._definitions.handle import JobHandle
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.driver import Driver
from ultijobs._queue.lanes import tenant_of
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
        self,
        driver: Driver,
        *,
        queues: Sequence[str],
        names: Sequence[str],
        declared: Mapping[str, int],
        apart: Collection[str] = (),
    ) -> None:
        """`apart` are the queues in which this application tells tenants apart."""
        self._driver = driver
        self._queues = queues
        self._names = names
        self._apart = frozenset(apart)
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
        return await self.file()

    async def file(self) -> int:
        """Files the rows that were enqueued under another declaration; how many. Raises what the driver raises."""
        filed = 0
        while more := await self._driver.file(self._queues, self._names, self.current, self._apart):
            filed += more
        return filed

    def misfiled(self, job: ClaimedJob) -> bool:
        """True for a tenant's row that was enqueued where tenants are not told apart."""
        return job.queue in self._apart and job.tenant_id is not None and tenant_of(job.lane) is None
