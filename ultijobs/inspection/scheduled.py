"""What an `Inspector` says and does about tasks: a part of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ultijobs._queue.driver import Driver
from ultijobs._queue.records import Enqueued
from ultijobs._queue.schedule import Leader, Slot
from ultijobs._queue.telling import CatalogEntry
from ultijobs.inspection.applying import Actor
from ultijobs.inspection.firing import Ask, apply_task, run_task, task_plan
from ultijobs.inspection.models import ActOutcome, Plan, PlanOptions
from ultijobs.inspection.schedule import Occurrence, TaskDetail, TaskRow, around, task_detail, task_rows

__all__ = ["Scheduled"]


class Scheduled:
    """The calls of `Inspector` about tasks and the scheduler."""

    _driver: Driver
    _actor: Actor

    async def tasks(self, declared: Sequence[CatalogEntry] = ()) -> list[TaskRow]:
        """Every task of the catalogue, with its next and last occurrence; `declared` wins over the catalogue."""
        return await task_rows(self._driver, declared)

    async def task(self, name: str, *, upcoming: int = 5, declared: Sequence[CatalogEntry] = ()) -> TaskDetail:
        """One task, what is coming and the newest lines of its ledger. Raises `DeclarationUnknown`."""
        return await task_detail(self._driver, name, upcoming, declared)

    async def preview(
        self, name: str, day: datetime, *, limit: int = 100, declared: Sequence[CatalogEntry] = ()
    ) -> list[Occurrence]:
        """A task's occurrences on the local day of `day`, the one before and the one after."""
        return await around(self._driver, name, day, limit, declared)

    async def leader(self) -> Leader | None:
        """The scheduler that led last, and until when; None when there was none."""
        return await self._driver.schedule.leader()

    async def slots(self, task: str | None = None, *, limit: int = 100) -> list[Slot]:
        """The ledger of the schedule, latest occurrence first: fired, caught up, skipped or missed with a reason."""
        return await self._driver.schedule.slots(task, limit=limit)

    async def plan_task(self, name: str, jobs: Mapping[str, int], options: PlanOptions | None = None) -> Plan:
        """What running a task by hand would do; `jobs` is how many of them its code asks for, by queue."""
        return await task_plan(self._driver, name, jobs, options or PlanOptions())

    async def apply_task(self, plan: Plan, ask: Ask) -> ActOutcome:
        """Carries the plan of a task out; `ask` is the `enqueue` of its handle."""
        return await apply_task(self._driver, plan, self._actor, ask)

    async def run_task(self, name: str, ask: Ask, *, reason: str | None = None) -> list[Enqueued]:
        """Runs a task by hand, with a row in the activity table; `ask` is the `enqueue` of its handle."""
        return await run_task(self._driver, self._actor, name, ask, reason=reason)
