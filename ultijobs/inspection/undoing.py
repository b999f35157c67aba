"""Takes back what an operator did: which jobs of an act can be what they were before it, and why others cannot."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._queue.activity import ActivityRow
from ultijobs._queue.driver import Driver
from ultijobs._queue.undoing import REMEMBERED
from ultijobs._queue.views import JobRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.errors import ActUnknown, NotUndoable
from ultijobs.inspection.commands import equivalent
from ultijobs.inspection.models import Action, Plan, PlanOptions, Target
from ultijobs.inspection.refusals import refusal_of

__all__ = ["act_id", "find_act", "undo_plan", "undone_by"]

_LOOKED_AT: Final = 200
_SAMPLES: Final = 3
_CAP: Final = 10_000
_PAGE: Final = 1_000
_OPPOSITES: Final = {
    Action.PAUSE: ("queues", "resume"),
    Action.RESUME: ("queues", "pause"),
    Action.DRAIN_WORKER: ("workers", "resume"),
    Action.RESUME_WORKER: ("workers", "drain"),
}
"""Acts on one queue or worker are taken back by the command that does the opposite."""


def undone_by(row: ActivityRow, now: datetime) -> str | None:
    """The command that takes an act back; None where none does: it changed nothing, or what it removed is gone.

    An act that was never closed may have changed something before its process died.
    """
    if row.done == 0 or row.detail.get("exit"):
        return None
    if row.action in _OPPOSITES:
        return shlex.join(["ultijobs", *_OPPOSITES[Action(row.action)], row.target.partition(":")[2]])
    steps = row.detail.get("from_step") or row.detail.get("only_step")
    if row.action not in {Action.RETRY, Action.CANCEL} or steps or row.at <= now - REMEMBERED:
        return None
    return f"ultijobs jobs undo {row.id}"


def act_id(text: str) -> UUID:
    """Raises `ActUnknown` for what is no id."""
    try:
        return UUID(text)
    except ValueError:
        raise ActUnknown(f"there is no act {text!r:.100}") from None


async def _act_row(driver: Driver, act: UUID) -> ActivityRow:
    """The row of the activity table. Raises `ActUnknown`."""
    found = await driver.inspect.activity(after=UUID(int=act.int + 1), limit=1)
    if not found or found[0].id != act:
        raise ActUnknown(f"there is no act {act}")
    return found[0]


async def find_act(driver: Driver, tail: str) -> list[UUID]:
    """Ids that end with these hex digits, among the newest thousand acts."""
    rows = await driver.inspect.activity(limit=_PAGE)
    return [row.id for row in rows if row.id.hex.endswith(tail)]


async def undo_plan(driver: Driver, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    """Which jobs of the act can be what they were. Raises `ActUnknown`, `NotUndoable` where nothing is left of it."""
    assert target.act is not None
    row = await _act_row(driver, target.act)
    if row.action not in {Action.RETRY, Action.CANCEL}:
        raise NotUndoable(f"{row.action} of {row.target} is not taken back by its id", fix=undone_by(row, as_of))
    matched = await driver.undoing.count(target.act, cap=_CAP, tenant=options.tenant)
    if not matched.value:
        whose = "" if options.tenant is None else f" of tenant {options.tenant}"
        raise NotUndoable(f"{row.action} {row.id} changed nothing{whose}, was undone, or is more than a day old")
    ids = await driver.undoing.jobs(
        target.act, limit=min(_LOOKED_AT, options.limit or _LOOKED_AT), tenant=options.tenant
    )
    if options.limit is not None and matched.value > options.limit:
        matched = type(matched)(options.limit)
    answers = await driver.undoing.foresee(target.act, ids, tenant=options.tenant)
    jobs = await _jobs(driver, ids, options.tenant)
    return Plan(
        action=Action.UNDO,
        target=target,
        options=options,
        as_of=as_of,
        matched=matched,
        queues=Counter(job.queue for job in jobs),
        tenants=len({job.tenant_id for job in jobs if job.tenant_id is not None}),
        samples=tuple(ids[:_SAMPLES]),
        refused=tuple(refusal_of(answer) for answer in answers if not answer.done),
        reruns=(),
        replays=(),
        warnings=() if options.tenant is not None else _warnings(row, matched.value),
        equivalent=equivalent(Action.UNDO, target, options, as_of),
    )


async def _jobs(driver: Driver, ids: list[UUID], tenant: str | None) -> list[JobRow]:
    if not ids:
        return []
    where = Where((Term(Field.ID, Op.IS, tuple(job.hex for job in ids)),), tenant)
    return (await driver.inspect.jobs(where, sort=Sort.OLDEST, limit=len(ids))).rows


def _warnings(row: ActivityRow, left: int) -> tuple[str, ...]:
    done = row.done or 0
    if left >= min(done, _CAP):
        return ()
    return (f"{done - left:,} of its {done:,} jobs were acted on again since; an act can be taken back for a day",)
