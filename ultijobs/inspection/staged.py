"""What an `Inspector` says and does about the outbox: a part of its class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs._definitions import checks
from ultijobs._queue.driver import Driver
from ultijobs._queue.outbox import OutboxDepth, OutboxPage, OutboxState
from ultijobs.errors import JobUnknown
from ultijobs.inspection.applying import Actor, apply_plan
from ultijobs.inspection.models import Action, ActOutcome, PlanOptions, Target
from ultijobs.inspection.plans import make_plan
from ultijobs.inspection.references import only, tail_of, whole_id

__all__ = ["MOST_ROWS", "Staged"]

MOST_ROWS: Final = 1_000
"""Of a page."""


class Staged:
    """The calls of `Inspector` about the outbox of this database."""

    _driver: Driver
    _actor: Actor

    async def outbox(
        self,
        states: Sequence[OutboxState] = (),
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> OutboxPage:
        """Rows staged in this database, newest first; pass the page's `next` as `after` to get the page behind it.

        Raises `Invariant` for a limit outside of 1 to 1,000.
        """
        limit = checks.whole(limit, "limit", least=1, most=MOST_ROWS)
        return await self._driver.outbox.rows(states, tenant=tenant, after=after, limit=limit)

    async def outbox_depth(self) -> OutboxDepth:
        """How many rows wait for a relay, since when, and how many are set aside."""
        return await self._driver.outbox.depth()

    async def find_staged(self, ref: str, *, tenant: str | None = None) -> UUID:
        """The outbox row that `ref` means, as `find` does for jobs. Raises `JobUnknown`, `Invariant`."""
        whole = whole_id(ref)
        digits = tail_of(ref) if whole is None else whole.hex
        found = [] if digits is None else await self._driver.outbox.resolve(digits, tenant=tenant)
        if not found:
            raise JobUnknown(f"there is no outbox row {ref!r:.100}", fix="ultijobs outbox ls")
        return only(ref, found)

    async def retry_staged(
        self, ids: Sequence[UUID], *, tenant: str | None = None, reason: str | None = None
    ) -> ActOutcome:
        """Stages again what was set aside, with the rows that were set aside with it, whoever's those are."""
        options = PlanOptions(tenant=tenant, reason=reason)
        plan = await make_plan(self._driver, Action.OUTBOX_RETRY, Target(ids=tuple(ids)), options)
        return await apply_plan(self._driver, plan, self._actor)
