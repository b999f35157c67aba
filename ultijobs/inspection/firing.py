"""A task that an operator runs by hand: its plan, its jobs, and a row in the activity table that says who asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import Enqueued
from ultijobs._queue.views import Count
from ultijobs.errors import JobDuplicate
from ultijobs.inspection.applying import Actor
from ultijobs.inspection.commands import equivalent, target_text
from ultijobs.inspection.models import Action, ActOutcome, Plan, PlanOptions, Refusal, Target
from ultijobs.inspection.said import reason_of

__all__ = ["Ask", "apply_task", "run_task", "task_plan"]

Ask = Callable[[], Awaitable[Sequence[Enqueued]]]


async def task_plan(driver: Driver, name: str, jobs: Mapping[str, int], options: PlanOptions) -> Plan:
    """What a run would ask for: `jobs` is how many of them go to each queue, as the task's own code says."""
    as_of = await driver.inspect.now()
    target = Target(task=name)
    total = sum(jobs.values())
    said = "its schedule goes on as if this had not happened" if total else "it asks for no job now"
    return Plan(
        action=Action.RUN_TASK,
        target=target,
        options=options,
        as_of=as_of,
        matched=Count(total),
        queues=dict(jobs),
        tenants=0,
        samples=(),
        refused=(),
        reruns=(),
        replays=(),
        warnings=(said,),
        equivalent=equivalent(Action.RUN_TASK, target, options, as_of),
    )


async def apply_task(driver: Driver, plan: Plan, actor: Actor, ask: Ask) -> ActOutcome:
    """Runs the task of a plan; a job that was live already is among the refused."""
    answers, activity, finished = await _run(driver, actor, plan.target.task or "", ask, plan.options.reason)
    done = tuple(answer.id for answer in answers if not answer.deduped)
    live = tuple(
        Refusal(answer.id, JobDuplicate.code, f"job {answer.id} is live and has the same key")
        for answer in answers
        if answer.deduped
    )
    return ActOutcome(len(answers), done, live, (), activity, finished)


async def run_task(driver: Driver, actor: Actor, name: str, ask: Ask, *, reason: str | None) -> list[Enqueued]:
    """Calls `ask`, which enqueues; the activity row is closed with what became of it, also when it raises."""
    return (await _run(driver, actor, name, ask, reason))[0]


async def _run(
    driver: Driver, actor: Actor, name: str, ask: Ask, reason: str | None
) -> tuple[list[Enqueued], UUID, datetime]:
    reason = reason_of(reason)
    target, options = Target(task=name), PlanOptions(reason=reason)
    entry = ActivityEntry(
        actor=actor.name,
        source=actor.source,
        action=str(Action.RUN_TASK),
        target=target_text(target),
        reason=reason,
        matched=None,
        equivalent=equivalent(Action.RUN_TASK, target, options, await driver.inspect.now()),
    )
    activity = await driver.open_activity(entry)
    try:
        answers = list(await ask())
    except Exception:
        await driver.close_activity(activity, matched=1, done=0, refused=0, failed=1)
        raise
    fresh = sum(not answer.deduped for answer in answers)
    finished = await driver.close_activity(
        activity, matched=len(answers), done=fresh, refused=len(answers) - fresh, failed=0
    )
    return answers, activity, finished
