"""How an act comes about: a plan of what was captured, the dialog, the apply, the line that tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ultijobs.inspection import Action, ActOutcome, Plan, PlanOptions, Target
from ultijobs_tui import format as fmt
from ultijobs_tui.desk import Intent
from ultijobs_tui.frame import Needs, PageAsk
from ultijobs_tui.link import explain
from ultijobs_tui.screens.plan import Applied, PlanDialog
from ultijobs_tui.table import Tone

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["Acting"]

_PLAN_SECONDS = 10.0
_UNDONE = 100
"""Up to so many cancelled jobs are kept to be brought back."""
_DONE = {
    Action.RETRY: "retried",
    Action.CANCEL: "cancelled",
    Action.PAUSE: "paused",
    Action.RESUME: "resumed",
    Action.DRAIN_WORKER: "draining",
    Action.RESUME_WORKER: "resumed",
    Action.START_BACKFILL: "started",
    Action.FORCE_BACKFILL: "started",
    Action.DRAIN_QUEUE: "moved",
    Action.OUTBOX_RETRY: "staged again",
    Action.RUN_TASK: "enqueued",
}

_VERBS = {
    Action.PAUSE: "pause",
    Action.RESUME: "resume",
    Action.DRAIN_WORKER: "drain",
    Action.RESUME_WORKER: "resume",
}


class Acting:
    """One act at a time. `undoable` is the inverse of the last one, where there is one."""

    def __init__(self, app: Cockpit) -> None:
        self._app = app
        self.busy = False
        self.undoable: Intent | None = None

    async def run(self, intent: Intent) -> None:
        """From the intent to the result line; an error is told, never raised."""
        if self.busy:
            self._app.say("one act at a time: another one is open", Tone.WARN)
            return
        self.busy = True
        try:
            await self._run(intent)
        except Exception as error:  # noqa: BLE001 - whatever an act raises is told to the operator
            self._app.say(f"✗ {intent.title}: {explain(error)}", Tone.BAD)
        finally:
            self.busy = False
            self._app.poke()

    async def _run(self, intent: Intent) -> None:
        app = self._app
        app.say(f"planning: {intent.title} …")
        async with asyncio.timeout(_PLAN_SECONDS):
            plan = await app.source.plan(intent.action, intent.target, self._within(intent))
        if plan.matched.value == 0 and plan.forecast is None:
            why = plan.warnings[0] if plan.warnings else "nothing matches any more"
            app.say(f"{intent.title}: {why}", Tone.WARN)
            return
        app.say("")
        if intent.undo:
            await self._tell(intent, Applied(plan, await self._at_once(plan)))
            return
        if intent.note:
            plan = replace(plan, warnings=(intent.note, *plan.warnings))
        applied = await app.push_screen_wait(PlanDialog(plan, intent.title, app.source.apply))
        if applied is None:
            app.say(f"{intent.title}: closed, nothing was changed")
            return
        await self._tell(intent, applied)

    async def _at_once(self, plan: Plan) -> ActOutcome:
        async with asyncio.timeout(_PLAN_SECONDS):
            return await self._app.source.apply(plan, on_progress=lambda _done, _total: None, stop=lambda: False)

    def _within(self, intent: Intent) -> PlanOptions:
        """What is narrowed to a tenant acts on the jobs of that tenant alone."""
        jobs = intent.action in {Action.RETRY, Action.CANCEL, Action.DRAIN_QUEUE}
        return replace(intent.options, tenant=self._app.tenant) if jobs else intent.options

    async def _tell(self, intent: Intent, applied: Applied) -> None:
        plan, outcome = applied.plan, applied.outcome
        bad = bool(outcome.failed) or (bool(outcome.refused) and not outcome.done)
        if plan.target.queue is not None or plan.target.worker is not None:
            self.undoable = _undo(plan)
        elif plan.action is Action.CANCEL:
            self.undoable = await self._undo_cancel(outcome)
        elif intent.undo:
            self.undoable = None
        back = " (ctrl+z brings back)" if plan.action is Action.CANCEL and self.undoable is not None else ""
        self._app.say(summary(plan, outcome) + back, Tone.BAD if bad else Tone.GOOD)
        self._app.acted(plan, outcome)
        if intent.follow and outcome.done:
            self._app.follow(outcome.done[0], plan)

    async def _undo_cancel(self, outcome: ActOutcome) -> Intent | None:
        """What never started is brought back as it was; what had started would not be the same again."""
        if not 0 < len(outcome.done) <= _UNDONE:
            return None
        ask = PageAsk(f"id:{','.join(job.hex for job in outcome.done)}", limit=_UNDONE)
        async with asyncio.timeout(_PLAN_SECONDS):
            page = (await self._app.source.fetch(Needs(page=ask))).page
        untouched = tuple(row.id for row in page.rows if row.lease_no == 0) if page is not None else ()
        if not untouched:
            return None
        title = f"UNDO: bring back {len(untouched)} cancelled job{'' if len(untouched) == 1 else 's'}"
        return Intent(Action.RETRY, untouched, title, undo=True)


def _undo(plan: Plan) -> Intent | None:
    """The inverse of what was applied; none for a worker that was told to exit."""
    if plan.inverse is None or plan.options.exit:
        return None
    target = Target(queue=plan.target.queue, worker=plan.target.worker)
    return Intent(plan.inverse, target, f"UNDO: {_VERBS[plan.inverse]} {_named(plan)}", undo=True)


def _named(plan: Plan) -> str:
    return f"queue {plan.target.queue}" if plan.target.queue is not None else f"worker {plan.target.worker}"


def summary(plan: Plan, outcome: ActOutcome) -> str:
    """One line: what was done to how many, what was refused and why."""
    verb = _DONE[plan.action]
    at = fmt.clock(plan.as_of)
    if plan.action is not Action.DRAIN_QUEUE and (plan.target.queue is not None or plan.target.worker is not None):
        reason = f' · "{plan.options.reason}"' if plan.options.reason else ""
        if not outcome.matched:
            return f"✓ {at} {_named(plan)} was so already"
        if plan.options.exit:
            return f"✓ {at} {verb} {_named(plan)}, it exits then{reason}"
        return f"✓ {at} {verb} {_named(plan)}{reason} (ctrl+z undo)"
    mark = "✗" if outcome.failed else "✓"
    one = f" {fmt.short_id(outcome.done[0])}" if len(outcome.done) == 1 else ""
    parts = [f"{mark} {at} {verb} {len(outcome.done):,}{one}"]
    if outcome.refused:
        first = outcome.refused[0]
        parts.append(f"refused {len(outcome.refused):,}: {first.code} {first.cause}")
    if outcome.failed:
        parts.append(f"failed {len(outcome.failed):,}: {outcome.failed[0].cause}")
    if outcome.stopped:
        parts.append("stopped by hand between two batches")
    return " · ".join(parts)
