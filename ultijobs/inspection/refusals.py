"""Foresees, for the rows of a plan, what the driver will refuse, and which steps run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from ultijobs._queue.driver import Driver
from ultijobs._queue.records import LIVE, ActResult, UniqueMode
from ultijobs._queue.steps import StepRecord, StepStatus
from ultijobs._queue.views import JobRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.errors import (
    JobDuplicate,
    JobMoved,
    JobNotCancellable,
    JobNotRetryable,
    JobUnknown,
    NotUndoable,
    StepUnknown,
)
from ultijobs.inspection.models import Action, PlanOptions, Refusal

__all__ = ["Reviewed", "refusal_of", "review"]

_LIVE = frozenset(str(state) for state in LIVE)
_STOPPED = frozenset({"dead", "failed", "cancelled"})
_STEPS_READ = 20


@dataclass(frozen=True, slots=True)
class Reviewed:
    refused: tuple[Refusal, ...]
    reruns: tuple[str, ...] = ()
    replays: tuple[str, ...] = ()
    unread_steps: bool = False
    """True when more rows exist than those whose steps were read."""


def refusal_of(result: ActResult) -> Refusal:
    """What a driver refused, with the line that fixes it for this very row."""
    fix: str | None = None
    if result.code == JobDuplicate.code:
        fix = _show(result.meta.get("existing_id", result.id))
    elif result.code == StepUnknown.code:
        fix = _show(result.id)
    elif result.code == JobMoved.code:
        fix = _elsewhere(result.id)
    elif result.code == NotUndoable.code:
        fix = _show(result.id)
    return Refusal(result.id, result.code or "X_ERROR", result.cause or "it was refused", fix)


async def review(
    driver: Driver, action: Action, ids: Sequence[UUID], rows: Mapping[UUID, JobRow], options: PlanOptions
) -> Reviewed:
    """The refusals among `ids`, and the steps of the first row that would be acted on."""
    refused = [Refusal(job, JobUnknown.code, f"there is no job {job}") for job in ids if job not in rows]
    acted: list[JobRow] = []
    for row in (rows[job] for job in ids if job in rows):
        cause = _by_state(action, row, options)
        if cause is not None:
            refused.append(cause)
        else:
            acted.append(row)
    if action is Action.CANCEL or not acted:
        return Reviewed(tuple(refused))
    twins = await _twins(driver, acted)
    refused += [_twin_refusal(row, twins[row.id]) for row in acted if row.id in twins]
    acted = [row for row in acted if row.id not in twins]
    if not acted:
        return Reviewed(tuple(refused))
    steps = await driver.load_steps([row.run_id for row in acted[:_STEPS_READ]])
    named = options.from_step if options.from_step is not None else options.only_step
    if named is not None:
        strangers = [r for r in acted[:_STEPS_READ] if all(s.name != named for s in steps.get(r.run_id, []))]
        refused += [_step_refusal(row, named, steps.get(row.run_id, [])) for row in strangers]
        acted = [row for row in acted if row not in strangers]
    first = steps.get(acted[0].run_id, []) if acted else []
    reruns, replays = _split(first, options)
    return Reviewed(tuple(refused), reruns, replays, unread_steps=len(acted) > 1 and bool(first))


def _by_state(action: Action, row: JobRow, options: PlanOptions) -> Refusal | None:
    if row.error_code == JobMoved.code or (row.behind is not None and row.behind == row.id):
        return Refusal(row.id, JobMoved.code, f"job {row.id}: {row.cancel_reason}", _elsewhere(row.id))
    if action is Action.CANCEL:
        if row.state in _LIVE:
            return None
        return Refusal(row.id, JobNotCancellable.code, f"job {row.id} is {row.state}; only a live job can be cancelled")
    if row.state in _STOPPED or (row.state == "done" and options.allow_done):
        return None
    return Refusal(row.id, JobNotRetryable.code, f"job {row.id} is {row.state}; only a stopped job can be retried")


async def _twins(driver: Driver, rows: Sequence[JobRow]) -> Mapping[UUID, JobRow]:
    keyed = {(r.name, r.tenant_id, r.idempotency_key): r for r in rows if r.idempotency_key is not None}
    if not keyed:
        return {}
    where = Where(
        (
            Term(Field.STATE, Op.IS, tuple(sorted(_LIVE))),
            Term(Field.JOB, Op.IS, tuple(sorted({name for name, _, _ in keyed}))),
            Term(Field.KEY, Op.IS, tuple(sorted({key for _, _, key in keyed if key}))),
        )
    )
    live = (await driver.inspect.jobs(where, sort=Sort.OLDEST, limit=2 * len(keyed))).rows
    if not live:
        return {}
    shares = {
        e.name for e in await driver.inspect.catalog("job") if e.declaration.get("unique") == UniqueMode.NOT_RUNNING
    }
    # Such a job gives its key up for good at its first claim, and a twin may run beside it.
    held = [r for r in live if not (r.name in shares and r.started_at is not None)]
    holders = {(r.name, r.tenant_id, r.idempotency_key): r for r in held}
    return {r.id: holders[key] for key, r in keyed.items() if key in holders}


def _twin_refusal(row: JobRow, twin: JobRow) -> Refusal:
    return Refusal(row.id, JobDuplicate.code, f"job {twin.id} is {twin.state} and has the same key", _show(twin.id))


def _step_refusal(row: JobRow, named: str, steps: Sequence[StepRecord]) -> Refusal:
    known = ", ".join(s.name for s in steps) or "none"
    return Refusal(row.id, StepUnknown.code, f"run {row.run_id} has no step {named!r}; it has: {known}", _show(row.id))


def _show(job: object) -> str:
    return f"ultijobs jobs show {job}"


def _elsewhere(job: object) -> str:
    return f"{_show(job)}, with --database-url of where it went"


def _split(steps: Sequence[StepRecord], options: PlanOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    start = next((s for s in steps if s.name == options.from_step), None)

    def again(step: StepRecord) -> bool:
        if step.status != StepStatus.COMPLETED or step.name == options.only_step:
            return True
        return start is not None and (step.started_at, step.position) >= (start.started_at, start.position)

    ordered = sorted(steps, key=lambda s: s.position)
    return tuple(s.name for s in ordered if again(s)), tuple(s.name for s in ordered if not again(s))
