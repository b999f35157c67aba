"""One job whole: what it is, the steps of its run over time, every attempt, and the error under the cursor."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from ultijobs.inspection import AttemptRecord, JobDetail, JobRow, JobState, StepRecord, StepStatus
from ultijobs_tui import format as fmt
from ultijobs_tui.look import Look
from ultijobs_tui.present.jobs import stands_since, waits_for
from ultijobs_tui.present.timeline import Scale, axis, bar
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["attempt_table", "error_lines", "retry_line", "run_facts", "run_title", "step_table", "telling_step"]

_STATUS: Final = {
    StepStatus.COMPLETED: ("✓ stored", Tone.GOOD),
    StepStatus.SLEEPING: ("☾ sleeping", Tone.MUTED),
    StepStatus.WAITING: ("✉ waiting", Tone.MUTED),
    StepStatus.FAILED: ("✗ failed", Tone.BAD),
}
_STEP_COLUMNS: Final = (
    Column("#", 3, align="right"),
    Column("STEP", 10, 26),
    Column("STATUS", 12, 24),
    Column("TRIES", 5, align="right", drop=2),
    Column("TOOK", 7, align="right"),
    Column("STARTED", 8, 11, align="right", drop=3),
)
_MARGIN: Final = 2
"""What the cursor takes of a list's width."""
_LEAST_DRAWN: Final = 12


def run_title(row: JobRow, look: Look) -> Line:
    """Who it is and where it stands."""
    stopped = row.state in {JobState.DEAD, JobState.FAILED}
    tone = Tone.BAD if stopped else Tone.GOOD if row.state == JobState.DONE else Tone.ACCENT
    state = f"{row.state.upper()}{f' {row.stop_reason}' if row.stop_reason else ''} {fmt.attempts(row)}"
    tenant = f" · tenant {row.tenant_id}" if row.tenant_id else ""
    when = f" {look.since(stands_since(row), exact=True)}"
    return line(
        Span(f" ‹ {fmt.short_id(row.id)}  ", Tone.MUTED),
        Span(row.name, Tone.STRONG),
        f" · {row.queue}{tenant} · ",
        Span(state, tone),
        Span(when, Tone.MUTED),
    )


def run_facts(detail: JobDetail, look: Look) -> list[Line]:
    """Its key, run, origin and what it waits for; long values are cut, never the line after them."""
    row = detail.row
    first: list[str | Span] = [
        Span(" key ", Tone.MUTED), row.idempotency_key or fmt.NEVER,
        Span("   run ", Tone.MUTED), fmt.short_id(row.run_id),
        Span("   by ", Tone.MUTED), row.enqueued_by or fmt.NEVER,
        Span("   enqueued ", Tone.MUTED), fmt.clock(row.created_at, now=look.now),
        Span("   code ", Tone.MUTED), row.code_version or fmt.NEVER,
        Span("   trace ", Tone.MUTED), (row.traceparent or fmt.NEVER).removeprefix("00-")[:8],
    ]  # fmt: skip
    second: list[str | Span] = [Span(" now ", Tone.MUTED), waits_for(row)]
    if row.state in {JobState.READY, JobState.DELAYED, JobState.SUSPENDED}:
        second += [Span("   due ", Tone.MUTED), look.until(row.run_at)]
    if row.state == JobState.RUNNING and row.lease_until is not None:
        second += [
            Span("   on ", Tone.MUTED),
            row.worker_id or fmt.NEVER,
            Span("   lease ", Tone.MUTED),
            _lease(row, look),
        ]
    if detail.retry_delays_ms:
        delays = ", ".join(fmt.age(ms) for ms in detail.retry_delays_ms[:5])
        second += [Span("   retries left after ", Tone.MUTED), delays]
    return [line(*first), line(*second)]


def _lease(row: JobRow, look: Look) -> str:
    if row.lease_until is None:
        return fmt.NEVER
    left = look.until(row.lease_until)
    return f"expired {look.since(row.lease_until)} ago" if left == "now" else left.removeprefix("in ") + " left"


def telling_step(detail: JobDetail) -> str | None:
    """The step that an operator looks for first: the one that failed or waits, else the last one."""
    for step in reversed(detail.steps):
        if step.status != StepStatus.COMPLETED:
            return step.name
    return detail.steps[-1].name if detail.steps else None


def step_table(detail: JobDetail, look: Look) -> Table:
    """The steps of a run, with a drawing of when each was at work between the enqueue and the end, or now."""
    empty = line(Span("No steps recorded: ", Tone.MUTED), "this body has no step.run, or none has ended yet.")
    scale = Scale(detail.row.created_at, _end(detail, look), _LEAST_DRAWN)
    table = Table((*_STEP_COLUMNS, Column("", _LEAST_DRAWN, grow=True)), _step_rows(detail, scale, look), (empty,))
    # The drawing has what the other columns leave.
    scale = replace(scale, width=dict(table.layout(look.width - _MARGIN))[len(_STEP_COLUMNS)])
    columns = (*_STEP_COLUMNS, Column(axis(scale), _LEAST_DRAWN, grow=True))
    return Table(columns, _step_rows(detail, scale, look), (empty,))


def _step_rows(detail: JobDetail, scale: Scale, look: Look) -> tuple[Row, ...]:
    rows = [_step(step, detail, scale, look) for step in sorted(detail.steps, key=lambda s: s.position)]
    running = detail.row.running_step
    if detail.row.state == JobState.RUNNING and running and all(s.name != running for s in detail.steps):
        rows.append(_executing(running, len(rows) + 1, detail.row, scale, look))
    return tuple(rows)


def _end(detail: JobDetail, look: Look) -> datetime:
    return detail.row.finished_at or look.now


def _step(step: StepRecord, detail: JobDetail, scale: Scale, look: Look) -> Row:
    label, tone = _status(step, detail, look)
    took = None if step.completed_at is None else fmt.ms_between(step.started_at, step.completed_at)
    spans = [(step.started_at, step.completed_at or _end(detail, look))]
    if step.status == StepStatus.FAILED:
        tries = [a for a in detail.attempts if a.started_at is not None and a.ended_at > step.started_at]
        spans = [(max(a.started_at or a.ended_at, step.started_at), a.ended_at) for a in tries] or spans
    drawn = bar(spans, scale, waiting=step.status in {StepStatus.SLEEPING, StepStatus.WAITING})
    if step.event:
        drawn = f"event {step.event}{f' matching {step.match}' if step.match else ''}  {drawn.strip()}"
    return Row(
        step.name,
        (
            cell(str(step.position), Tone.MUTED),
            cell(step.name, Tone.STRONG),
            cell(label, tone),
            cell(str(step.tries), Tone.WARN if step.tries > 1 else Tone.MUTED),
            cell(fmt.took(took)),
            cell(fmt.clock(step.started_at, now=look.now), Tone.MUTED),
            cell(drawn, tone if step.status == StepStatus.FAILED else Tone.ACCENT),
        ),
    )


def _status(step: StepRecord, detail: JobDetail, look: Look) -> tuple[str, Tone]:
    """The word of a status; one of a newer release is shown as it is."""
    if step.status not in set(StepStatus):
        return step.status, Tone.WARN
    label, tone = _STATUS[StepStatus(step.status)]
    if step.wake_at is not None and step.status in {StepStatus.SLEEPING, StepStatus.WAITING}:
        return f"{label} {look.until(step.wake_at)}", tone
    earlier = step.lease_no < detail.row.lease_no and detail.row.state == JobState.RUNNING
    return ("↻ replayed", tone) if earlier and step.status == StepStatus.COMPLETED else (label, tone)


def _executing(name: str, position: int, row: JobRow, scale: Scale, look: Look) -> Row:
    """The step that the lease names, before it is recorded."""
    began = row.started_at or row.updated_at
    drawn = bar([(began, look.now)], scale)
    cells: tuple[Cell, ...] = (
        cell(str(position), Tone.MUTED),
        cell(name, Tone.STRONG),
        cell("▶ running", Tone.ACCENT),
        cell(fmt.NEVER, Tone.MUTED),
        cell(fmt.took(fmt.ms_between(began, look.now))),
        cell(fmt.NEVER, Tone.MUTED),
        cell(drawn, Tone.ACCENT),
    )
    return Row(name, cells)


def retry_line(detail: JobDetail, step: StepRecord | None) -> Line:
    """What a retry from the step under the cursor would keep and what it would run again."""
    if detail.row.state not in {JobState.DEAD, JobState.FAILED, JobState.CANCELLED} or not detail.steps:
        return line()
    ordered = sorted(detail.steps, key=lambda s: (s.started_at, s.position))
    start = ordered.index(step) if step in ordered and step.status == StepStatus.COMPLETED else len(ordered)
    kept = [s.name for s in ordered[:start] if s.status == StepStatus.COMPLETED]
    again = [s.name for s in ordered if s.name not in kept]
    said = f"keeps {', '.join(kept) or 'nothing'} · runs again {', '.join(again) or 'what comes after'}"
    return line(Span(" r  ", Tone.KEY), Span("retry from here: ", Tone.MUTED), said)


def attempt_table(detail: JobDetail, look: Look) -> Table:
    """Every attempt that ended in anything but success or a wait, and the one that runs."""
    columns = (
        Column("#", 3, align="right"),
        Column("OUTCOME", 9),
        Column("WORKER", 8, 20),
        Column("STARTED", 8, 11, align="right"),
        Column("TOOK", 7, align="right"),
        Column("CODE", 12, 26, drop=2),
        Column("ERROR", 24, grow=True),
    )
    rows = [_attempt(a, look) for a in detail.attempts]
    if detail.row.state == JobState.RUNNING:
        rows.append(_current(detail.row, look))
    empty = line(Span("No attempt has failed.", Tone.MUTED))
    return Table(columns, tuple(rows), (empty,))


def _attempt(attempt: AttemptRecord, look: Look) -> Row:
    took = None if attempt.started_at is None else fmt.ms_between(attempt.started_at, attempt.ended_at)
    tone = Tone.WARN if attempt.outcome in {"retried", "returned", "cancelled"} else Tone.BAD
    said = (attempt.error or "").strip().split("\n", 1)[0]
    return Row(
        f"{attempt.lease_no}",
        (
            cell(str(attempt.attempt), Tone.MUTED),
            cell(attempt.outcome, tone),
            cell(attempt.worker_id or fmt.NEVER),
            cell(fmt.clock(attempt.started_at, now=look.now), Tone.MUTED),
            cell(fmt.took(took)),
            cell(attempt.error_code or fmt.NEVER, Tone.MUTED),
            cell(said or fmt.NEVER),
        ),
    )


def _current(row: JobRow, look: Look) -> Row:
    began = row.started_at or row.updated_at
    return Row(
        f"{row.lease_no}",
        (
            cell(str(row.attempt), Tone.MUTED), cell("running", Tone.ACCENT), cell(row.worker_id or fmt.NEVER),
            cell(fmt.clock(began, now=look.now), Tone.MUTED), cell(fmt.took(fmt.ms_between(began, look.now))),
            cell(fmt.NEVER, Tone.MUTED), cell(waits_for(row)),
        ),
    )  # fmt: skip


def error_lines(title: str, text: str | None, most: int) -> list[Line]:
    """The end of an error or traceback, which says most; `o` shows it whole."""
    if not text:
        return []
    lines = [part for part in text.rstrip().split("\n") if part.strip()]
    cut = len(lines) > most
    note = f"last {most} of {len(lines)} lines · o whole" if cut else ""
    return [rule(title, note), *(line(" ", part) for part in lines[-most:])]
