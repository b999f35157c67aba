"""What an `Inspector` says and does about backfills: a part of its class."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ultijobs._backfill.gate import Gate
from ultijobs._queue.backfills import PassRow, PassStatus
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry
from ultijobs.inspection.applying import Actor
from ultijobs.inspection.backfills import BackfillRow, backfill_rows
from ultijobs.inspection.models import Plan, PlanOptions
from ultijobs.inspection.plans import backfill_plan
from ultijobs.inspection.starting import foresee

__all__ = ["Backfilled"]


class Backfilled:
    """The calls of `Inspector` about backfills."""

    _driver: Driver
    _actor: Actor

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

    async def plan_backfill(
        self,
        name: str,
        *,
        force: bool = False,
        reason: str | None = None,
        declared: Sequence[CatalogEntry] = (),
        gate: Gate | None = None,
        remaining: int | None = None,
    ) -> Plan:
        """What starting a pass would do, for `apply`; `plan(Action.START_BACKFILL, name)` for who has the application.

        `declared` and `remaining`, the answer of `count()`, come from its code; `gate` reads the migrations of another
        database. Raises `BackfillUnknown`, and `DriverUnavailable` when the migrations cannot be read.
        """
        forecast = await foresee(self._driver, name, force=force, declared=declared, gate=gate, remaining=remaining)
        return backfill_plan(forecast, PlanOptions(reason=reason), await self._driver.inspect.now())
