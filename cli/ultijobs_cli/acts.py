"""How an act runs: plan, show, ask, apply in batches, tell what was done, refused and failed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from ultijobs.errors import CliBadFlag
from ultijobs.inspection import Action, ActOutcome, Inspector, Plan, Refusal
from ultijobs_cli import wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.exit_codes import ExitCode, exit_code_of
from ultijobs_cli.report import Finding, Report, told
from ultijobs_cli.tables import Block, Cell, Pairs, Paragraph

__all__ = [
    "Consent",
    "Unknown",
    "act",
    "agreed",
    "at_terminal",
    "nothing_known",
    "outcome_findings",
    "plan_blocks",
    "refused_rows",
    "stopping",
]

_TYPED: Final = 20
"""From so many rows on, the number is typed instead of a letter."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A reference, as it was given, that names no job."""

    id: str
    code: str
    cause: str


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the person has agreed beforehand, only wants to see the plan, or has to be asked."""

    needed: bool
    yes: bool
    dry_run: bool


async def act(call: Invocation, api: Inspector, plan: Plan, consent: Consent, refused: Sequence[Unknown]) -> Report:
    """Applies `plan` once the person agrees. `refused` was found before there was a plan.

    Raises `CliBadFlag` where consent is needed and nobody can be asked; nothing has changed then.
    """
    if consent.dry_run:
        return _plan_report(plan, refused)
    if consent.needed and not consent.yes and not _ask(call, plan):
        return Report("nothing changed", exit_code=ExitCode.FAILED)
    with stopping(call) as stopped:

        def tell(done: int, of: int | None) -> None:
            call.screen.progress(f"{plan.action}: {done:,}" + ("" if of is None else f" of {of:,}"))

        try:
            outcome = await api.apply(plan, on_progress=tell, stop=stopped)
        finally:
            call.screen.progress("")
    report = _outcome_report(str(plan.action), outcome, refused)
    if not plan.matched.value:
        return replace(report, hints=[*report.hints, *plan.warnings])
    if plan.inverse is Action.UNDO and outcome.done:
        return replace(report, hints=[*report.hints, f"ultijobs jobs undo {wording.tail(outcome.activity_id)}"])
    return report


def _outcome_report(action: str, outcome: ActOutcome, before: Sequence[Unknown] = ()) -> Report:
    """What an act on jobs has done. Refused or failed rows make it exit 1; unknown ids and steps alone, 3."""
    refused: list[Refusal | Unknown] = [*before, *outcome.refused]
    matched = outcome.matched + len(before)
    summary = f"{action}: {len(outcome.done):,} of {wording.plural(matched, 'job')}"
    if outcome.stopped:
        summary += ", stopped before the rest"
    return Report(
        summary=summary,
        data={
            "matched": matched,
            "done": outcome.done,
            "refused": refused_rows(refused),
            "failed": refused_rows(outcome.failed),
            "stopped": outcome.stopped,
            "activity_id": outcome.activity_id,
        },
        blocks=[Paragraph(summary)],
        findings=[*map(_finding, before), *outcome_findings(outcome)],
        exit_code=_exit(refused, outcome),
    )


def refused_rows(refused: Sequence[Refusal | Unknown]) -> list[dict[str, object]]:
    """What the data of an act lists; the line that fixes each is with the findings."""
    return [{"id": row.id, "code": row.code, "cause": row.cause} for row in refused]


def nothing_known(refused: Sequence[Unknown]) -> Report:
    """The answer to an act on ids of which none exists."""
    data: dict[str, object] = {
        "matched": len(refused),
        "done": (),
        "refused": refused,
        "failed": (),
        "stopped": False,
        "activity_id": None,
    }
    findings = [_finding(refusal) for refusal in refused]
    return Report("no such job", data=data, findings=findings, exit_code=_exit(refused, None))


def outcome_findings(outcome: ActOutcome) -> list[Finding]:
    """A finding for each row that was refused or failed."""
    return [_finding(refusal) for refusal in (*outcome.refused, *outcome.failed)]


def plan_blocks(plan: Plan) -> list[Block]:
    """The plan as a person reads it before saying yes."""
    some = "" if plan.sampled is None else f" (of the first {plan.sampled:,})"
    lines = [
        (str(plan.action), Cell(wording.plural(wording.count(plan.matched), "job"), "bold")),
        ("queues", Cell(", ".join(f"{queue} {number:,}" for queue, number in plan.queues.items()) + some)),
        ("tenants", Cell(f"{plan.tenants}{some}" if plan.tenants else "")),
        ("such as", Cell(", ".join(map(wording.tail, plan.samples)))),
        ("re-runs", Cell(", ".join(plan.reruns))),
        ("replays from storage", Cell(", ".join(plan.replays))),
        ("would be refused", Cell(f"{len(plan.refused)} of those looked at" if plan.refused else "", "yellow")),
        ("as of", Cell(f"{wording.moment(plan.as_of)} UTC; what is touched later is left alone")),
        ("the same command", Cell(plan.equivalent)),
    ]
    shown: list[Block] = [Pairs(tuple((name, cell) for name, cell in lines if cell.text))]
    shown.extend(Paragraph(warning, "yellow") for warning in plan.warnings)
    return shown


def _plan_report(plan: Plan, before: Sequence[Unknown]) -> Report:
    refused: list[Refusal | Unknown] = [*before, *plan.refused]
    return Report(
        summary=f"{plan.action} would touch {wording.plural(wording.count(plan.matched), 'job')}; nothing changed",
        data={
            "dry_run": True,
            "matched": plan.matched.value,
            "matched_kind": plan.matched.kind,
            "done": [],
            "refused": refused_rows(refused),
            "failed": [],
            "queues": plan.queues,
            "tenants": plan.tenants,
            "samples": plan.samples,
            "reruns": plan.reruns,
            "replays": plan.replays,
            "warnings": plan.warnings,
            "as_of": plan.as_of,
            "equivalent": plan.equivalent,
        },
        blocks=plan_blocks(plan),
        findings=[_finding(refusal) for refusal in refused],
        exit_code=_exit(before, None),
    )


def _ask(call: Invocation, plan: Plan) -> bool:
    if not at_terminal() or call.flags.json or call.flags.json_lines:
        raise CliBadFlag(
            f"{plan.action} touches {wording.plural(wording.count(plan.matched), 'job')} "
            "and there is no terminal to ask at",
            fix="look with --dry-run, then add --yes",
        )
    call.screen.blocks_aside(plan_blocks(plan))
    if plan.matched.kind == "exact" and plan.matched.value <= _TYPED:
        return agreed(f"{plan.action} {wording.plural(plan.matched.value, 'job')}? [y/N] ")
    wanted = str(plan.matched.value) if plan.matched.kind == "exact" else str(plan.action)
    return _answer(f"type {wanted} to go on: ").replace(",", "") == wanted


def at_terminal() -> bool:
    """True when a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """What the person at the terminal answers; only a yes is one."""
    return _answer(question).lower() in {"y", "yes"}


def _answer(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


@contextmanager
def stopping(call: Invocation) -> Generator[Callable[[], bool]]:
    """The first ctrl-c stops after the batch under way, the second breaks off."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def ask() -> None:
        asked.set()
        call.screen.note("stopping after this batch; ctrl-c again breaks off")
        loop.remove_signal_handler(signal.SIGINT)

    with suppress(NotImplementedError):  # Windows breaks off at the first
        loop.add_signal_handler(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _exit(refused: Sequence[Refusal | Unknown], outcome: ActOutcome | None) -> ExitCode:
    if outcome is not None and outcome.stopped:
        return ExitCode.INTERRUPTED
    if outcome is not None and outcome.failed:
        return ExitCode.FAILED
    if not refused:
        return ExitCode.DONE
    unknown = all(exit_code_of(refusal.code) is ExitCode.NOT_FOUND for refusal in refused)
    return ExitCode.NOT_FOUND if unknown else ExitCode.FAILED


def _finding(refusal: Refusal | Unknown) -> Finding:
    fix = refusal.fix if isinstance(refusal, Refusal) else None
    return told(refusal.code, refusal.cause, fix, at=None if refusal.id is None else str(refusal.id))
