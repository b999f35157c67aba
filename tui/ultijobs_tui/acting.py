"""How an act comes about: a plan of what was captured, the dialog, the apply, the line that tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ultijobs.errors import UltijobsError
from ultijobs.inspection import Action, ActOutcome, Plan, PlanOptions, Target
from ultijobs_tui import format as fmt
from ultijobs_tui.desk import Intent
from ultijobs_tui.link import explain
from ultijobs_tui.screens.plan import Applied, PlanDialog
from ultijobs_tui.table import Tone

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["Acting"]

_PLAN_SECONDS = 10.0
_AT_ONCE = 500
"""Up to so many jobs an undo asks nobody, and takes one batch."""
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
    Action.UNDO: "undone:",
}

_VERBS = {
    Action.PAUSE: "pause",
    Action.RESUME: "resume",
    Action.DRAIN_WORKER: "drain",
    Action.RESUME_WORKER: "resume",
}


class Acting:
    """One act at a time. `undoable` is the inverse of the last one; where there is none, `stays` says why."""

    def __init__(self, app: Cockpit) -> None:
        self._app = app
        self.busy = False
        self.undoable: Intent | None = None
        self.stays = ""

    def nothing_to_undo(self) -> str | None:
        """Why there is nothing to take back; None when there is."""
        if self.undoable is not None:
            return None
        return f"nothing to undo: {self.stays}" if self.stays else "nothing to undo"

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
        if (intent.undo and plan.matched.value <= _AT_ONCE) or _plain(intent, plan):
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
        if plan.action in {Action.RETRY, Action.CANCEL}:
            self.undoable = await self._undo_jobs(plan, outcome)
        elif intent.undo or (outcome.matched and plan.inverse is not None) or plan.options.exit:
            self.undoable, self.stays = _undo(plan), ""
        of_jobs = plan.action in {Action.RETRY, Action.CANCEL} and self.undoable is not None
        self._app.say(summary(plan, outcome) + (" (ctrl+z undo)" if of_jobs else ""), Tone.BAD if bad else Tone.GOOD)
        self._app.acted(plan, outcome)
        if intent.follow and outcome.done:
            self._app.follow(outcome.done[0], plan)

    async def _undo_jobs(self, plan: Plan, outcome: ActOutcome) -> Intent | None:
        """Offered for what can be what it was; a failure to find that out takes nothing from what was done."""
        self.stays = ""
        target = Target(act=outcome.activity_id)
        try:
            async with asyncio.timeout(_PLAN_SECONDS):
                back = await self._app.source.plan(Action.UNDO, target, PlanOptions())
        except (UltijobsError, TimeoutError) as error:
            self.stays = explain(error)
            return None
        jobs = f"job{'' if back.matched.value == 1 else 's'}"
        if back.matched.value > len(back.refused):
            return Intent(Action.UNDO, target, f"UNDO: {plan.action} of {fmt.count(back.matched)} {jobs}", undo=True)
        self.stays = back.refused[0].cause if back.refused else ""
        return None


def _plain(intent: Intent, plan: Plan) -> bool:
    """One thing that `ctrl+z` makes what it was, with nothing to say about it first: it needs no dialog."""
    one = plan.action in {Action.RESUME, Action.RESUME_WORKER} or bool(plan.target.ids and len(plan.target.ids) == 1)
    told = bool(intent.note or intent.follow or plan.warnings or plan.refused)
    return one and not told and plan.inverse is not None


def _undo(plan: Plan) -> Intent | None:
    """The inverse of what was applied to a queue or a worker; none for a worker that was told to exit."""
    if plan.inverse is None or plan.options.exit:
        return None
    target = Target(queue=plan.target.queue, worker=plan.target.worker)
    title = f"UNDO: {_VERBS[plan.inverse]} {_named(plan)}"
    return Intent(plan.inverse, target, title, plan.inverse_options, undo=True)


def _named(plan: Plan) -> str:
    return f"queue {plan.target.queue}" if plan.target.queue is not None else f"worker {plan.target.worker}"


def summary(plan: Plan, outcome: ActOutcome) -> str:
    """One line: what was done to how many, what was refused and why."""
    verb = _DONE[plan.action]
    at = fmt.clock(outcome.finished_at)
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
