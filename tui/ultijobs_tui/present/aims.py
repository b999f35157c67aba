"""What a plan is for, in words: jobs, a queue, a worker, a task, a backfill, rows of the outbox."""

from __future__ import annotations

from typing import Final

from ultijobs.inspection import Action, Forecast, Plan
from ultijobs_tui import format as fmt
from ultijobs_tui.present.causes import shares
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["LABEL", "aim_lines", "fact"]

LABEL: Final = 10
"""Letters in front of each fact."""


def aim_lines(plan: Plan) -> list[Line]:
    """The first lines of a dialog: what the act touches, and how much of it."""
    target = plan.target
    if target.queue is not None:
        moves = plan.action is Action.DRAIN_QUEUE
        ready = "" if moves or plan.ready is None else f" · {fmt.count(plan.ready)} ready"
        return [fact("queue", f"{target.queue}{ready}"), *(_jobs(plan) if moves else ())]
    if target.worker is not None:
        return _worker(plan)
    if target.task is not None:
        return [
            fact("task", target.task),
            fact("enqueues", f"{_counted(plan, 'job')} now, to {shares(plan.queues)}"),
        ]
    if plan.forecast is not None:
        return _forecast(plan.forecast)
    if plan.action is Action.OUTBOX_RETRY:
        return [fact("stages", f"{_counted(plan, 'row')} again, for {shares(plan.queues)}")]
    return _jobs(plan)


def fact(label: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
    return line(*_label(label), Span(text, tone))


def _label(text: str) -> tuple[Span, ...]:
    return (Span(f" {text:<{LABEL}} ", Tone.MUTED),)


def _worker(plan: Plan) -> list[Line]:
    same = f" · {plan.matched.value} processes go by this name" if plan.matched.value > 1 else ""
    lines = [fact("worker", f"{plan.target.worker}{same}")]
    if plan.action is Action.DRAIN_WORKER:
        after = "then the process ends" if plan.options.exit else "then it stands by as drained, until resumed"
        lines.append(fact("then", f"claims no more, finishes what it runs; {after}"))
    return lines


def _forecast(forecast: Forecast) -> list[Line]:
    """What a pass would touch, and each condition for it."""
    row, left = forecast.row, forecast.remaining
    if left is None:
        touches = "nobody has counted its rows: its own count() tells, ultijobs backfill --app MODULE:NAME"
    else:
        pages = (
            "" if forecast.batches is None else f" in {forecast.batches:,} page{'' if forecast.batches == 1 else 's'}"
        )
        pace = "" if row.rate is None else f" at {row.rate:g}/s"
        takes = "" if forecast.takes_ms is None else f" ≈ {fmt.age(forecast.takes_ms)}"
        touches = f"{fmt.count(left)} row{'' if left.value == 1 else 's'}{pages}{pace}{takes}"
    lines = [fact("backfill", f"{row.name} · {row.state}"), fact("touches", touches)]
    for check in forecast.checks:
        mark = Span("✓", Tone.GOOD) if check.holds else Span("✗", Tone.BAD)
        lines.append(line(*_label("checks" if check is forecast.checks[0] else ""), mark, f" {check.what}"))
    return lines


def _counted(plan: Plan, noun: str) -> str:
    return f"{fmt.count(plan.matched)} {noun}{'' if plan.matched.value == 1 else 's'}"


def _of_sample(plan: Plan) -> str:
    """Numbers of the rows that were looked at are not those of all that match."""
    return "" if plan.sampled is None else f"   of the first {plan.sampled:,}"


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
        lines.append(fact("where", plan.target.text))
    tenants = f"   {plan.tenants} tenant{'' if plan.tenants == 1 else 's'}" if plan.tenants else ""
    lines.append(fact("queues", f"{shares(plan.queues)}{tenants}{_of_sample(plan)}"))
    if plan.samples:
        lines.append(fact("samples", "  ".join(fmt.short_id(job) for job in plan.samples)))
    return lines
