"""Carries a plan out: in batches, up to its watermark, with an activity row opened before and closed after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import ActResult, RequeueAsk
from ultijobs._queue.telling import WorkerOrder
from ultijobs._queue.where import ANY
from ultijobs.errors import Invariant, UltijobsError
from ultijobs.inspection.commands import target_text
from ultijobs.inspection.models import Action, ActOutcome, Plan, Refusal
from ultijobs.inspection.moving import Move, opened, whither
from ultijobs.inspection.plans import JOB_ACTIONS
from ultijobs.inspection.refusals import refusal_of
from ultijobs.inspection.starting import Forecast, start

__all__ = ["Actor", "apply_plan", "write_result"]

Progress = Callable[[int, int | None], None]
Stop = Callable[[], bool]
Act = Callable[[Sequence[UUID]], Awaitable[Sequence[ActResult]]]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts and from where, as the activity table keeps it."""

    name: str
    source: str


@dataclass(slots=True)
class _Tally:
    matched: int = 0
    done: list[UUID] = field(default_factory=list[UUID])
    refused: list[Refusal] = field(default_factory=list[Refusal])
    failed: list[Refusal] = field(default_factory=list[Refusal])
    changed: int = 0
    """Queues or workers that were told; jobs are counted in `done`."""
    stopped: bool = False

    def add(self, results: Sequence[ActResult]) -> None:
        self.matched += len(results)
        for result in results:
            if result.done:
                self.done.append(result.id)
            else:
                self.refused.append(refusal_of(result))


async def apply_plan(
    driver: Driver, plan: Plan, actor: Actor, *, on_progress: Progress | None = None, stop: Stop | None = None
) -> ActOutcome:
    """Does what `plan` says; each batch is a transaction of its own, and what was done before a failure stays done.

    A batch that fails is listed in `failed` and ends the run; the activity row is closed with the true counts also
    when the caller is cancelled. After a crash the row stays open: `finished_at` is null.
    """
    if plan.options.batch < 1:
        raise Invariant(f"batch is {plan.options.batch}", fix="set batch to 1 or more rows")
    activity = await driver.open_activity(_entry(plan, actor))
    tally = _Tally()
    try:
        if plan.action in JOB_ACTIONS or plan.action is Action.UNDO:
            await _each(driver, plan, tally, lambda ids: _act(driver, plan, ids, activity), on_progress, stop)
        elif plan.action is Action.DRAIN_QUEUE:
            await _move(driver, plan, actor, tally, on_progress, stop)
        elif plan.forecast is not None:
            await _start(driver, plan.forecast, actor, tally)
        elif plan.action is Action.OUTBOX_RETRY:
            tally.add(await driver.outbox.retry(plan.target.ids, tenant=plan.options.tenant))
        else:
            await _switch(driver, plan, actor, tally)
    finally:
        finished = await write_result(
            driver,
            activity,
            matched=tally.matched,
            done=len(tally.done) + tally.changed,
            refused=len(tally.refused),
            failed=len(tally.failed),
        )
    return ActOutcome(
        matched=tally.matched,
        done=tuple(tally.done),
        refused=tuple(tally.refused),
        failed=tuple(tally.failed),
        activity_id=activity,
        finished_at=finished,
        stopped=tally.stopped,
    )


async def write_result(
    driver: Driver, activity: UUID, *, matched: int, done: int, refused: int, failed: int
) -> datetime:
    """Closes the row of an act, and says when. A caller that is cancelled meanwhile is so after it."""
    closing = asyncio.ensure_future(
        driver.close_activity(activity, matched=matched, done=done, refused=refused, failed=failed)
    )
    try:
        return await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait({closing})
        raise


def _entry(plan: Plan, actor: Actor) -> ActivityEntry:
    options = plan.options
    detail: dict[str, object] = {
        name: value
        for name in ("from_step", "only_step", "allow_done", "limit", "exit", "tenant")
        if (value := getattr(options, name)) not in (None, False)
    }
    if options.to is not None:
        detail |= {"to": whither(options), "to_schema": options.to_schema}
    if options.duration is not None:
        detail["duration_ms"] = int(options.duration.total_seconds() * 1000)
    return ActivityEntry(
        actor=actor.name,
        source=actor.source,
        action=str(plan.action),
        target=target_text(plan.target),
        reason=options.reason,
        as_of=plan.as_of,
        matched=plan.matched.value,
        equivalent=plan.equivalent,
        detail=detail,
    )


async def _move(
    driver: Driver, plan: Plan, actor: Actor, tally: _Tally, on_progress: Progress | None, stop: Stop | None
) -> None:
    async with opened(driver, plan.options) as there:
        move = Move(driver, there, plan, actor.name)
        await move.begin()
        await _each(driver, plan, tally, move.batch, on_progress, stop)
        if not tally.failed:
            stays = await move.end()
            tally.refused += [] if tally.stopped else stays
            tally.matched += 0 if tally.stopped else sum(refusal.id is not None for refusal in stays)


async def _each(
    driver: Driver, plan: Plan, tally: _Tally, act: Act, on_progress: Progress | None, stop: Stop | None
) -> None:
    total = plan.matched.value if plan.matched.kind == "exact" else None
    first = True
    async for ids in _batches(driver, plan):
        if stop is not None and stop():
            tally.stopped = True
            return
        if not first and plan.options.pause:
            await asyncio.sleep(plan.options.pause.total_seconds())
        first = False
        try:
            tally.add(await act(ids))
        except UltijobsError as exc:
            tally.matched += len(ids)
            tally.failed += [Refusal(job, exc.code, exc.cause, exc.fix) for job in ids]
            return
        if on_progress is not None:
            on_progress(tally.matched, total)


async def _batches(driver: Driver, plan: Plan) -> AsyncGenerator[list[UUID]]:
    left = plan.options.limit
    size = plan.options.batch
    if plan.target.where is None and plan.target.act is None:
        ids = list(plan.target.ids[:left])
        for at in range(0, len(ids), size):
            yield ids[at : at + size]
        return
    after: UUID | None = None
    while left is None or left > 0:
        wanted = size if left is None else min(size, left)
        page = await _page(driver, plan, after, wanted)
        if not page:
            return
        yield page
        after = page[-1]
        left = None if left is None else left - len(page)


async def _page(driver: Driver, plan: Plan, after: UUID | None, limit: int) -> list[UUID]:
    if plan.target.act is not None:
        return await driver.undoing.jobs(plan.target.act, after=after, limit=limit, tenant=plan.options.tenant)
    return await driver.inspect.targets(plan.target.where or ANY, as_of=plan.as_of, after=after, limit=limit)


async def _act(driver: Driver, plan: Plan, ids: Sequence[UUID], activity: UUID) -> list[ActResult]:
    options = plan.options
    tenant = options.tenant or (plan.target.where.tenant if plan.target.where is not None else None)
    if plan.target.act is not None:
        return await driver.undoing.undo(plan.target.act, ids, tenant=tenant)
    if plan.action is Action.CANCEL:
        return await driver.cancel(ids, reason=options.reason, tenant=tenant, act=activity)
    return await driver.requeue(
        RequeueAsk(
            tuple(ids),
            from_step=options.from_step,
            only_step=options.only_step,
            allow_done=options.allow_done,
            tenant=tenant,
            act=activity,
        )
    )


async def _start(driver: Driver, forecast: Forecast, actor: Actor, tally: _Tally) -> None:
    """Asks for a pass, unless it was refused when it was foreseen."""
    tally.matched = 1
    if forecast.refusals:
        tally.refused += [Refusal(None, error.code, error.cause) for error in forecast.refusals]
        return
    answer = await start(driver, forecast, actor=actor.name)
    if answer.refusal is None and answer.id is not None:
        tally.done.append(answer.id)
    elif answer.refusal is not None:
        tally.refused.append(Refusal(answer.id, answer.refusal.code, answer.refusal.cause))


async def _switch(driver: Driver, plan: Plan, actor: Actor, tally: _Tally) -> None:
    options = plan.options
    queue, worker = plan.target.queue or "", plan.target.worker or ""
    changed: int
    match plan.action:
        case Action.PAUSE:
            changed = await driver.pause(queue, actor=actor.name, reason=options.reason, duration=options.duration)
        case Action.RESUME:
            changed = await driver.resume(queue)
        case Action.DRAIN_WORKER:
            changed = await driver.order_worker(worker, WorkerOrder.EXIT if options.exit else WorkerOrder.DRAIN)
        case Action.RESUME_WORKER:
            changed = await driver.order_worker(worker, WorkerOrder.NONE)
        case _:
            raise Invariant(f"{plan.action} is not applied here", fix="use Inspector.apply_task")
    tally.matched = tally.changed = changed
