"""The plan of an act on the staged outbox: rows that were set aside are staged again."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._queue.driver import Driver
from ultijobs._queue.outbox import OutboxState
from ultijobs._queue.views import Count
from ultijobs.errors import JobNotRetryable
from ultijobs.inspection.commands import equivalent
from ultijobs.inspection.models import Action, Plan, PlanOptions, Refusal, Target

__all__ = ["staged_plan"]

_LOOKED_AT: Final = 1_000
_SAMPLES: Final = 3


async def staged_plan(driver: Driver, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    """Looks among the newest rows that are set aside; those that went with them come along."""
    page = await driver.outbox.rows((OutboxState.SET_ASIDE,), limit=_LOOKED_AT)
    own = {row.id for row in page.rows if options.tenant in {None, row.tenant_id}}
    asked = set(target.ids) & own
    freed = [row for row in page.rows if row.id in asked or row.held_by in asked]
    found = {row.id for row in freed}
    missing = [asked_for for asked_for in target.ids if asked_for not in found]
    along = len(freed) - len(found & asked)
    warnings = [f"{along} later rows of the same transaction come along"] if along else []
    return Plan(
        action=Action.OUTBOX_RETRY,
        target=target,
        options=options,
        as_of=as_of,
        matched=Count(len(freed)),
        queues=Counter(row.queue for row in freed if row.queue is not None),
        tenants=len({row.tenant_id for row in freed if row.tenant_id is not None}),
        samples=tuple(row.id for row in freed[:_SAMPLES]),
        refused=() if page.next else tuple(map(_refusal, missing)),
        reruns=(),
        replays=(),
        warnings=tuple(warnings),
        equivalent=equivalent(Action.OUTBOX_RETRY, target, options, as_of),
    )


def _refusal(id: UUID) -> Refusal:
    return Refusal(id, JobNotRetryable.code, f"outbox row {id} is not set aside", fix="ultijobs outbox ls")
