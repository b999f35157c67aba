"""A plan in words: what it matches, what it refuses, what runs again, and the command that does the same."""

from __future__ import annotations

import textwrap
from datetime import timedelta
from typing import Final

from ultijobs.inspection import Action, Plan
from ultijobs_tui import format as fmt
from ultijobs_tui.present.causes import shares
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["command_lines", "confirm_word", "plan_lines", "takes_reason"]

_FREELY: Final = 20
"""Up to here a plan of something that can be done again is confirmed without typing."""
_LABEL: Final = 10


def confirm_word(plan: Plan) -> str | None:
    """What must be typed to confirm: the number of jobs, the verb when that is not known, or nothing (None)."""
    if plan.action is Action.DRAIN_WORKER and plan.matched.value > 1:
        return str(plan.matched.value)
    if plan.action not in {Action.RETRY, Action.CANCEL}:
        return None
    if plan.matched.kind != "exact":
        return str(plan.action)
    free = 1 if plan.action is Action.CANCEL else _FREELY
    return str(plan.matched.value) if plan.matched.value > free else None


def takes_reason(plan: Plan) -> bool:
    return plan.action not in {Action.RESUME, Action.RESUME_WORKER}


def plan_lines(plan: Plan, width: int) -> list[Line]:
    lines: list[Line] = []
    if plan.target.queue is not None:
        waiting = plan.queues.get(plan.target.queue, 0)
        lines.append(_fact("queue", f"{plan.target.queue} · {waiting:,} ready"))
    elif plan.target.worker is not None:
        same = f" · {plan.matched.value} processes go by this name" if plan.matched.value > 1 else ""
        lines.append(_fact("worker", f"{plan.target.worker}{same}"))
        if plan.action is Action.DRAIN_WORKER:
            after = "then the process ends" if plan.options.exit else "then it stands by as drained, until resumed"
            lines.append(_fact("then", f"claims no more, finishes what it runs; {after}"))
    elif plan.target.task is not None:
        lines.append(_fact("task", plan.target.task))
        lines.append(_fact("enqueues", f"{_counted(plan, 'job')} now, to {shares(plan.queues)}"))
    elif plan.action is Action.OUTBOX_RETRY:
        lines.append(_fact("stages", f"{_counted(plan, 'row')} again, for {shares(plan.queues)}"))
    else:
        lines += _jobs(plan)
    if plan.refused:
        lines.append(_fact("refused", _refusals(plan), Tone.WARN))
    if plan.action is Action.RETRY and (plan.reruns or plan.replays):
        lines.append(_fact("runs again", ", ".join(plan.reruns) or "what comes after the stored steps"))
        lines.append(_fact("replays", ", ".join(plan.replays) or "nothing: no stored step is kept"))
    for warning in plan.warnings:
        lines += _warning(warning, width)
    if plan.options.pause and plan.matched.value > plan.options.batch:
        lines.append(_fact("pace", _pace(plan.matched.value, plan.options.batch, plan.options.pause)))
    return [*lines, *command_lines(plan.equivalent, width)]


def command_lines(command: str, width: int, *, label: str = "same as") -> list[Line]:
    """A command over as many lines as it needs: none of it is hidden."""
    room = max(20, width - _LABEL - 2)
    parts = textwrap.wrap(command, room, break_on_hyphens=False, drop_whitespace=True) or [""]
    first, *rest = parts
    return [_fact(label, first, Tone.ACCENT), *(_fact("", part, Tone.ACCENT) for part in rest)]


def _counted(plan: Plan, noun: str) -> str:
    return f"{fmt.count(plan.matched)} {noun}{'' if plan.matched.value == 1 else 's'}"


def _jobs(plan: Plan) -> list[Line]:
    jobs = "job" if plan.matched.value == 1 else "jobs"
    lines = [
        line(
            *_label("matches"),
            Span(f"{fmt.count(plan.matched)} {jobs}", Tone.STRONG),
            Span(f"  as of {fmt.clock(plan.as_of)}; what arrives later is not touched", Tone.MUTED),
        )
    ]
    if plan.target.text:
        lines.append(_fact("where", plan.target.text))
    tenants = f"   {plan.tenants} tenant{'' if plan.tenants == 1 else 's'}" if plan.tenants else ""
    lines.append(_fact("queues", f"{shares(plan.queues)}{tenants}"))
    if plan.samples:
        lines.append(_fact("samples", "  ".join(fmt.short_id(job) for job in plan.samples)))
    return lines


def _warning(text: str, width: int) -> list[Line]:
    first, *rest = textwrap.wrap(text, max(20, width - 4)) or [""]
    return [line(Span(f" {mark} {part}", Tone.WARN)) for mark, part in [("!", first), *((" ", part) for part in rest)]]


def _refusals(plan: Plan) -> str:
    causes: dict[str, int] = {}
    for refusal in plan.refused:
        causes[refusal.code] = causes.get(refusal.code, 0) + 1
    counted = ", ".join(f"{code} ({n})" for code, n in sorted(causes.items(), key=lambda item: -item[1]))
    only = plan.refused[0].cause if len(plan.refused) == 1 else counted
    return f"{len(plan.refused):,}: {only}"


def _pace(rows: int, batch: int, pause: timedelta) -> str:
    seconds = (rows // batch) * pause.total_seconds()
    return f"{batch} per batch, {fmt.age(pause.total_seconds() * 1000)} between (about {fmt.age(seconds * 1000)})"


def _label(text: str) -> tuple[Span, ...]:
    return (Span(f" {text:<{_LABEL}} ", Tone.MUTED),)


def _fact(label: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
    return line(*_label(label), Span(text, tone))
