"""Says what an act would do before it is done: how many rows, which, who refuses and why, and the same as a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final
from uuid import UUID

from ultijobs._queue.driver import Driver
from ultijobs._queue.records import StopReason
from ultijobs._queue.views import Count, JobRow, QueueRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.errors import FilterInvalid, Invariant, QueueUnknown, WorkerUnknown
from ultijobs.inspection.commands import equivalent
from ultijobs.inspection.filter import parse_where
from ultijobs.inspection.models import LOOKED_AT, Action, Plan, PlanOptions, Refusal, Target
from ultijobs.inspection.move_plans import MOVED_STATES, move_plan
from ultijobs.inspection.outbox import staged_plan
from ultijobs.inspection.refusals import Reviewed, review
from ultijobs.inspection.said import reason_of, refuse_names
from ultijobs.inspection.starting import Forecast, foresee
from ultijobs.inspection.undoing import act_id, undo_plan
from ultijobs.inspection.unheard import unheard

__all__ = ["BACKFILL_ACTIONS", "JOB_ACTIONS", "backfill_plan", "make_plan", "target_of"]

JOB_ACTIONS: Final = frozenset({Action.RETRY, Action.CANCEL})
BACKFILL_ACTIONS: Final = frozenset({Action.START_BACKFILL, Action.FORCE_BACKFILL})
_QUEUE_ACTIONS: Final = frozenset({Action.PAUSE, Action.RESUME})
_OF_QUEUES: Final = _QUEUE_ACTIONS | {Action.DRAIN_QUEUE}
_SAMPLES: Final = 3
_A_SECOND: Final = timedelta(seconds=1)
_CAP: Final = 10_000
_ELSEWHERE: Final = {Action.UNDO: undo_plan, Action.OUTBOX_RETRY: staged_plan, Action.DRAIN_QUEUE: move_plan}
_DEFAULT_STATES: Final = {
    Action.RETRY: ("dead", "failed"),
    Action.CANCEL: ("ready", "delayed", "running", "suspended"),
    Action.DRAIN_QUEUE: MOVED_STATES,
}
_INVERSE: Final = {
    Action.PAUSE: Action.RESUME,
    Action.RESUME: Action.PAUSE,
    Action.DRAIN_WORKER: Action.RESUME_WORKER,
    Action.RESUME_WORKER: Action.DRAIN_WORKER,
}


def target_of(action: Action, given: Target | str | Sequence[UUID], options: PlanOptions) -> Target:
    """What `given` means for `action`: a text is a filter, a queue, a worker, a backfill or an act's id by its kind.

    An empty filter is refused with `FilterInvalid`. A filter that names no state gets the states that the act is for,
    so that what it matches is what it can change.
    """
    if isinstance(given, str):
        of_jobs = action in JOB_ACTIONS
        given = Target(where=parse_where(given), text=given) if of_jobs else _named(action, given)
    elif not isinstance(given, Target):
        given = Target(ids=tuple(given))
    _check(action, given)
    refuse_names(given)
    if given.where is None:
        return replace(given, ids=tuple(dict.fromkeys(given.ids)))
    where = given.where
    if where.states() is None and action in _DEFAULT_STATES:
        where = replace(where, terms=(Term(Field.STATE, Op.IS, _DEFAULT_STATES[action]), *where.terms))
    return replace(given, where=replace(where, tenant=options.tenant or where.tenant))


def _named(action: Action, name: str) -> Target:
    if action is Action.UNDO:
        return Target(act=act_id(name))
    if action in _OF_QUEUES:
        return Target(queue=name)
    return Target(backfill=name) if action in BACKFILL_ACTIONS else Target(worker=name)


async def make_plan(driver: Driver, action: Action, target: Target, options: PlanOptions) -> Plan:
    """Reads what the act would touch, in a bounded number of statements, and changes nothing."""
    if options.as_of is not None and options.as_of.tzinfo is None:
        raise Invariant(f"as_of is {options.as_of}, without a zone", fix="give an aware datetime")
    as_of = options.as_of or await driver.inspect.now()
    options = replace(options, reason=reason_of(options.reason))
    if options.from_step is not None and options.only_step is not None:
        raise Invariant("from_step and only_step exclude each other", fix="give one of them")
    if action in _ELSEWHERE:
        return await _ELSEWHERE[action](driver, target, options, as_of)
    if action in JOB_ACTIONS:
        return await _jobs_plan(driver, action, target, options, as_of)
    if action in _QUEUE_ACTIONS:
        return await _queue_plan(driver, action, target, options, as_of)
    if action in BACKFILL_ACTIONS:
        forecast = await foresee(driver, target.backfill or "", force=action is Action.FORCE_BACKFILL)
        return backfill_plan(forecast, options, as_of)
    return await _worker_plan(driver, action, target, options, as_of)


def backfill_plan(forecast: Forecast, options: PlanOptions, as_of: datetime) -> Plan:
    """A pass that was foreseen, as a plan: `matched` is 1 when it would be started, and 0 when not."""
    row = forecast.row
    action = Action.FORCE_BACKFILL if forecast.force else Action.START_BACKFILL
    target = Target(backfill=row.name)
    changed = [f"backfill {row.name} has changed since its last pass"] if row.changed else []
    return Plan(
        action=action,
        target=target,
        options=options,
        as_of=as_of,
        matched=Count(0 if forecast.refusals else 1),
        queues={row.queue or "default": 1},
        tenants=0,
        samples=(),
        refused=tuple(Refusal(None, error.code, error.cause) for error in forecast.refusals),
        reruns=(),
        replays=(),
        warnings=(*(error.cause for error in forecast.refusals), *changed),
        equivalent=equivalent(action, target, options, as_of),
        forecast=forecast,
    )


async def _jobs_plan(driver: Driver, action: Action, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    store = driver.inspect
    if target.where is None:
        ids = list(target.ids)
        matched = Count(len(ids))
    else:
        ids = await store.targets(target.where, as_of=as_of, limit=min(LOOKED_AT, options.limit or LOOKED_AT))
        matched = Count(len(ids)) if len(ids) < LOOKED_AT else await store.count(target.where, cap=_CAP)
    if options.limit is not None and (matched.value > options.limit or matched.kind == "capped"):
        ids, matched = ids[: options.limit], Count(options.limit)
    looked_at = ids[:LOOKED_AT]
    rows = await _rows(driver, looked_at, options.tenant)
    reviewed = await review(driver, action, looked_at, rows, options)
    return Plan(
        action=action,
        target=target,
        options=options,
        as_of=as_of,
        matched=matched,
        queues=Counter(row.queue for row in rows.values()),
        tenants=len({row.tenant_id for row in rows.values() if row.tenant_id is not None}),
        samples=tuple(looked_at[:_SAMPLES]),
        refused=reviewed.refused,
        reruns=reviewed.reruns,
        replays=reviewed.replays,
        warnings=await _warnings(driver, action, rows, reviewed, options) if ids else await _strangers(driver, target),
        equivalent=equivalent(action, target, options, as_of),
        inverse=_job_inverse(action, rows.values(), drops=bool(options.from_step or options.only_step)),
    )


async def _rows(driver: Driver, ids: Sequence[UUID], tenant: str | None) -> Mapping[UUID, JobRow]:
    if not ids:
        return {}
    where = Where((Term(Field.ID, Op.IS, tuple(job.hex for job in ids)),), tenant)
    page = await driver.inspect.jobs(where, sort=Sort.OLDEST, limit=len(ids))
    return {row.id: row for row in page.rows}


def _job_inverse(action: Action, rows: Iterable[JobRow], *, drops: bool) -> Action | None:
    """A step record that was dropped is gone, and what had started would not be the same again."""
    if action is Action.RETRY:
        return None if drops else Action.UNDO
    return Action.UNDO if all(row.lease_no == 0 for row in rows) else None


async def _warnings(
    driver: Driver, action: Action, rows: Mapping[UUID, JobRow], reviewed: Reviewed, options: PlanOptions
) -> tuple[str, ...]:
    if action is Action.CANCEL:
        running = sum(row.state == "running" for row in rows.values())
        return (f"{running} are running: a body may go on until its next step write",) if running else ()
    said: list[str] = []
    if terminal := sum(row.stop_reason == StopReason.TERMINAL for row in rows.values()):
        said.append(
            f"{terminal} stopped as terminal: every attempt fails the same way until the code or the data change"
        )
    changed = sum(row.stop_reason == StopReason.CODE_CHANGED for row in rows.values())
    if changed and options.from_step is None:
        said.append(
            f"{changed} stopped as code-changed, and stop so again unless the code asks for the recorded steps: "
            f"deploy that, or retry --from-step the first step that has changed"
        )
    if rows:
        paused = {q.queue for q in await driver.inspect.queues() if q.state == "paused"}
        said += [
            f"queue {queue} is paused: they wait until it is resumed"
            for queue in sorted(paused & {r.queue for r in rows.values()})
        ]
    if reviewed.unread_steps:
        said.append("steps are listed from the first row; other rows may have recorded others")
    return tuple(said)


async def _strangers(driver: Driver, target: Target) -> tuple[str, ...]:
    """Names of the filter that nothing is known under, where nothing matches."""
    return () if target.where is None else tuple(map(str, await unheard(driver.inspect, target.where)))


async def _queue_plan(driver: Driver, action: Action, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    name = target.queue or ""
    queues = {q.queue: q for q in await driver.inspect.queues()}
    row = queues.get(name)
    warnings: list[str] = []
    if row is None:
        near = get_close_matches(name, queues, 1)
        told = f"no job, worker or declaration names the queue {name}"
        if action is Action.RESUME:
            raise QueueUnknown(told, fix=f"ultijobs queues resume {near[0]}" if near else None)
        # It may be paused before its first job comes.
        warnings.append(f"{told}; there is {near[0]}" if near else told)
    changes = (row is not None and row.state == "paused") is (action is Action.RESUME)
    if not changes:
        warnings.append(f"queue {name} is {'paused already' if action is Action.PAUSE else 'not paused'}")
    return Plan(
        action=action,
        target=target,
        options=options,
        as_of=as_of,
        matched=Count(int(changes)),
        queues={name: 0 if row is None else row.ready.value},
        tenants=0,
        samples=(),
        refused=(),
        reruns=(),
        replays=(),
        warnings=tuple(warnings),
        equivalent=equivalent(action, target, options, as_of),
        inverse=_INVERSE[action] if changes else None,
        inverse_options=_pause_again(row, as_of) if action is Action.RESUME and row is not None else PlanOptions(),
        ready=Count(0) if row is None else row.ready,
    )


def _pause_again(row: QueueRow, as_of: datetime) -> PlanOptions:
    """The pause that is ended, as it would have gone on."""
    left = None if row.resume_at is None else max(row.resume_at - as_of, _A_SECOND)
    return PlanOptions(reason=row.pause_reason, duration=left)


async def _worker_plan(driver: Driver, action: Action, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    workers = await driver.inspect.workers()
    told = [w for w in workers if w.worker_id == target.worker and not w.ended]
    if not told:
        raise WorkerUnknown(f"no live worker is called {target.worker!r:.100}", fix="ultijobs workers ls")
    changes = any(w.state in {"draining", "drained"} for w in told) is (action is Action.RESUME_WORKER)
    running = sum(w.running for w in told)
    flying = "1 job is in flight there" if running == 1 else f"{running} jobs are in flight there"
    warnings = (flying,) if running and action is Action.DRAIN_WORKER else ()
    return Plan(
        action=action,
        target=target,
        options=options,
        as_of=as_of,
        matched=Count(len(told)),
        queues={},
        tenants=0,
        samples=(),
        refused=(),
        reruns=(),
        replays=(),
        warnings=warnings,
        equivalent=equivalent(action, target, options, as_of),
        inverse=_INVERSE[action] if changes and not options.exit else None,
    )


def _check(action: Action, target: Target) -> None:
    if action is Action.RUN_TASK:
        raise Invariant("what a task asks for is known to its code alone", fix="use Inspector.plan_task")
    given = [
        target.where is not None,
        bool(target.ids),
        target.queue is not None,
        target.worker is not None,
        target.backfill is not None,
        target.act is not None,
    ]
    if sum(given) != 1:
        raise Invariant(
            f"{action} needs exactly one target", fix="give a filter, ids, a queue, a worker, a backfill or an act"
        )
    if target.where is not None and not target.where.terms:
        raise FilterInvalid(
            f"an empty filter would {action} everything",
            fix=f"name what is meant, such as --where state:{_DEFAULT_STATES.get(action, ('ready',))[0]}",
            meta={"position": 0},
        )
    wheres, ids, queues, workers, backfills, acts = given
    fits, kind = {
        Action.DRAIN_QUEUE: (wheres or queues, "a queue"),
        Action.OUTBOX_RETRY: (ids, "outbox rows"),
        Action.UNDO: (acts, "an act"),
        **dict.fromkeys(_QUEUE_ACTIONS, (queues, "a queue")),
        **dict.fromkeys(JOB_ACTIONS, (wheres or ids, "jobs")),
        **dict.fromkeys(BACKFILL_ACTIONS, (backfills, "a backfill")),
    }.get(action, (workers, "a worker"))
    if not fits:
        raise Invariant(f"{action} acts on {kind}", fix=f"give {kind}")
