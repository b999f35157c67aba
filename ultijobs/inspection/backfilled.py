"""What an `Inspector` says about backfills: a part of its class."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ultijobs._queue.backfills import PassRow, PassStatus
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import CatalogEntry
from ultijobs.inspection.backfills import BackfillRow, backfill_rows

__all__ = ["Backfilled"]


class Backfilled:
    """The calls of `Inspector` about backfills."""

    _driver: Driver

    async def backfills(self, declared: Sequence[CatalogEntry] = ()) -> list[BackfillRow]:
        """Every backfill of the catalogue and of the ledger, with its newest pass; `declared` wins over the catalogue.

        Three statements, whatever their number.
        """
        return await backfill_rows(self._driver, declared)

    async def passes(
        self,
        *,
        name: str | None = None,
        run_id: UUID | None = None,
        statuses: Sequence[PassStatus] = (),
        limit: int = 100,
    ) -> list[PassRow]:
        """The ledger, newest first. A pass whose job was cancelled or has died is not `running`."""
        return await self._driver.backfills.passes(name=name, run_id=run_id, statuses=statuses, limit=limit)
