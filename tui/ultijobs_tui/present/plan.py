"""A plan in words: what it matches, what it refuses, what runs again, and the command that does the same."""

from __future__ import annotations

import textwrap
from datetime import timedelta
from typing import Final

from ultijobs.inspection import Action, Count, Plan
from ultijobs_tui import format as fmt
from ultijobs_tui.paint import folded
from ultijobs_tui.present.aims import LABEL, aim_lines, fact
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["command_lines", "confirm_word", "plan_lines", "takes_reason"]

_FACT_ROWS: Final = 3
_FREELY: Final = 20
"""Up to here a plan of something that can be done again is confirmed without typing."""


def confirm_word(plan: Plan) -> str | None:
    """What must be typed to confirm: the number of jobs, the verb when that is not known, or nothing (None)."""
    if plan.action is Action.DRAIN_WORKER and plan.matched.value > 1:
        return str(plan.matched.value)
    if plan.action not in {Action.RETRY, Action.CANCEL, Action.DRAIN_QUEUE}:
        return None
    if plan.matched.kind != "exact":
        return str(plan.action).partition("-")[0]
    free = _FREELY if plan.action is Action.RETRY else 1
    return str(plan.matched.value) if plan.matched.value > free else None


def takes_reason(plan: Plan) -> bool:
    return plan.action not in {Action.RESUME, Action.RESUME_WORKER}


def plan_lines(plan: Plan, width: int, most: int | None = None) -> list[Line]:
    """All of it; of a command that does not fit into `most` lines, as much as does, and the key that copies it."""
    lines = aim_lines(plan)
    if plan.refused and plan.forecast is None:
        lines.append(fact("refused", _refusals(plan), Tone.WARN))
    if plan.action is Action.RETRY and (plan.reruns or plan.replays):
        lines.append(fact("runs again", ", ".join(plan.reruns) or "what comes after the stored steps"))
        lines.append(fact("replays", ", ".join(plan.replays) or "nothing: no stored step is kept"))
    lines = [part for each in lines for part in folded(each, width, LABEL + 2, most=_FACT_ROWS)]
    for warning in plan.warnings:
        lines += _warning(warning, width)
    if plan.options.pause and plan.matched.value > plan.options.batch:
        lines.append(fact("pace", _pace(plan.matched, plan.options.batch, plan.options.pause)))
    command = command_lines(plan.equivalent, width)
    if most is not None and len(lines) + len(command) > most:
        command = [*command[: max(1, most - len(lines) - 1)], fact("", "… Y copies all of it", Tone.MUTED)]
    return [*lines, *command]


def command_lines(command: str, width: int, *, label: str = "same as") -> list[Line]:
    """A command over as many lines as it needs: none of it is hidden."""
    room = max(20, width - LABEL - 2)
    parts = textwrap.wrap(command, room, break_on_hyphens=False, drop_whitespace=True) or [""]
    first, *rest = parts
    return [fact(label, first, Tone.ACCENT), *(fact("", part, Tone.ACCENT) for part in rest)]


def _warning(text: str, width: int) -> list[Line]:
    first, *rest = textwrap.wrap(text, max(20, width - 4)) or [""]
    return [line(Span(f" {mark} {part}", Tone.WARN)) for mark, part in [("!", first), *((" ", part) for part in rest)]]


def _refusals(plan: Plan) -> str:
    causes: dict[str, int] = {}
    for refusal in plan.refused:
        causes[refusal.code] = causes.get(refusal.code, 0) + 1
    counted = ", ".join(f"{code} ({n})" for code, n in sorted(causes.items(), key=lambda item: -item[1]))
    only = plan.refused[0].cause if len(plan.refused) == 1 else counted
    some = "" if plan.sampled is None or plan.action is Action.DRAIN_QUEUE else f" of the first {plan.sampled:,}"
    return f"{len(plan.refused):,}{some}: {only}"


def _pace(rows: Count, batch: int, pause: timedelta) -> str:
    seconds = (rows.value // batch) * pause.total_seconds()
    some = "at least" if rows.kind == "capped" else "about"
    return f"{batch} per batch, {fmt.age(pause.total_seconds() * 1000)} between ({some} {fmt.age(seconds * 1000)})"
