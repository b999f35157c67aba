"""Jobs as rows: where each stands, since when, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ultijobs.inspection import JobRow, JobState, Progress, Sort, WaitingOn
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.causes import first_line
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line

__all__ = ["SORT_WORDS", "dead_job_table", "job_table", "progress_words", "stands_since", "state_cell", "waits_for"]

SORT_WORDS: Final = {
    Sort.NEWEST: "newest first",
    Sort.OLDEST: "oldest first",
    Sort.DUE: "due first",
    Sort.STOPPED: "last stopped first",
}
_TONES: Final = {
    JobState.READY: Tone.PLAIN,
    JobState.DELAYED: Tone.MUTED,
    JobState.RUNNING: Tone.ACCENT,
    JobState.SUSPENDED: Tone.MUTED,
    JobState.DONE: Tone.GOOD,
    JobState.FAILED: Tone.BAD,
    JobState.DEAD: Tone.BAD,
    JobState.CANCELLED: Tone.MUTED,
}
_WAITS: Final = {
    WaitingOn.DELAY: "its time",
    WaitingOn.BACKOFF: "backoff",
    WaitingOn.PAUSED: "queue paused",
    WaitingOn.NO_WORKER: "no worker",
    WaitingOn.SLOT: "a free slot",
    WaitingOn.TENANT: "its tenant's cap",
    WaitingOn.RATE: "its tenant's rate",
    WaitingOn.SLEEP: "a sleep",
    WaitingOn.EVENT: "an event",
    WaitingOn.BEHIND: "its twin",
}


def job_table(
    frame: Frame, look: Look, *, gone: Sequence[tuple[int, JobRow]] = (), empty: Sequence[Line] = ()
) -> Table:
    """One row per job of the page. `gone` are rows that left the filter since the last tick, with their old places."""
    columns = (
        Column("ID", 9),
        Column("JOB", 10, 24),
        Column("QUEUE", 7, 14, drop=5),
        Column("STATE", 9, 10),
        Column("ATT", 5, align="right", drop=4),
        Column("AGE", 7, align="right"),
        Column("DUE", 8, align="right", drop=3),
        Column("TENANT", 6, 12, drop=6),
        Column("WAITING ON · ERROR", 16, grow=True),
        Column("HOLDER", 8, 14, drop=7),
    )
    if frame.page is None:
        why = frame.failures.get("jobs")
        return Table(columns, (), (line(Span(f"?? {why}" if why else "reading…", Tone.WARN if why else Tone.MUTED)),))
    rows = [_row(job, look) for job in frame.page.rows]
    for place, job in gone:
        rows.insert(min(place, len(rows)), _gone(job, look))
    return Table(columns, tuple(rows), tuple(empty))


def _row(job: JobRow, look: Look) -> Row:
    return Row(
        str(job.id),
        (
            cell(fmt.short_id(job.id), Tone.MUTED),
            cell(job.name, Tone.STRONG),
            cell(job.queue),
            state_cell(job),
            cell(fmt.attempts(job), Tone.WARN if job.attempt > 1 else Tone.MUTED),
            cell(look.since(stands_since(job), exact=True)),
            cell(_due(job, look), Tone.MUTED),
            cell(job.tenant_id or fmt.NEVER, Tone.MUTED),
            cell(waits_for(job)),
            cell(job.worker_id if job.state == JobState.RUNNING and job.worker_id else fmt.NEVER, Tone.MUTED),
        ),
    )


def _gone(job: JobRow, look: Look) -> Row:
    row = _row(job, look)
    cells = list(row.cells)
    cells[3] = cell("gone", Tone.MUTED)
    cells[8] = cell("left this list", Tone.MUTED)
    return Row(row.key, tuple(cells), Tone.MUTED)


def state_cell(job: JobRow) -> Cell:
    tone = _TONES.get(JobState(job.state), Tone.PLAIN) if job.state in set(JobState) else Tone.WARN
    return cell(job.state, tone)


def stands_since(job: JobRow) -> datetime:
    """Since it is due, since it runs, since it stopped: what `age:` counts."""
    if job.state == JobState.RUNNING:
        return job.started_at or job.updated_at
    if job.finished_at is not None:
        return job.finished_at
    return job.due_at


def _due(job: JobRow, look: Look) -> str:
    if job.state in {JobState.READY, JobState.DELAYED, JobState.SUSPENDED}:
        return look.until(job.run_at)
    return fmt.NEVER


def waits_for(job: JobRow) -> str:
    """One line: what it waits for, what it does, or what stopped it."""
    if job.state in {JobState.DEAD, JobState.FAILED}:
        return f"{job.stop_reason or 'stopped'}: {first_line(job.last_error) or job.error_code or 'no error recorded'}"
    if job.state == JobState.CANCELLED:
        return f"cancelled: {job.cancel_reason}" if job.cancel_reason else "cancelled"
    if job.state == JobState.RUNNING:
        return _doing(job)
    if job.waiting_on is None:
        return fmt.NEVER
    words = _WAITS.get(job.waiting_on, str(job.waiting_on))
    if job.waiting_on is WaitingOn.BACKOFF and job.error_code:
        return f"{words} after {job.error_code}"
    return f"{words} {fmt.short_id(job.behind)}" if job.waiting_on is WaitingOn.BEHIND and job.behind else words


def _doing(job: JobRow) -> str:
    parts = [f"in step {job.running_step}" if job.running_step else "running"]
    if said := progress_words(job.progress):
        parts.append(said)
    return " · ".join(parts)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def progress_words(progress: Progress | None) -> str:
    """`1,200 of 4,800 (25%) · rows`; nothing when a body tells nothing."""
    if progress is None:
        return ""
    done, total = progress.done, progress.total
    told = _amount(done) if not total else f"{_amount(done)} of {_amount(total)} ({100 * done / total:.0f}%)"
    return f"{told} · {progress.message}" if progress.message else told


def dead_job_table(frame: Frame, look: Look, *, step: str | None = None) -> Table:
    """The jobs of one cause, the last stopped first."""
    columns = (
        Column("ID", 9),
        Column("JOB", 10, 22),
        Column("TENANT", 6, 12, drop=3),
        Column("STOPPED", 7, align="right"),
        Column("ATT", 5, align="right", drop=2),
        Column("STEP", 6, 14, drop=4),
        Column("MESSAGE", 28, grow=True),
        Column("WORKER", 8, 14, drop=5),
    )
    if frame.page is None:
        why = frame.failures.get("jobs")
        return Table(columns, (), (line(Span(f"?? {why}" if why else "reading…", Tone.WARN if why else Tone.MUTED)),))
    rows = tuple(
        Row(
            str(job.id),
            (
                cell(fmt.short_id(job.id), Tone.MUTED),
                cell(job.name, Tone.STRONG),
                cell(job.tenant_id or fmt.NEVER, Tone.MUTED),
                cell(look.since(job.finished_at or job.updated_at)),
                cell(fmt.attempts(job), Tone.MUTED),
                cell(step or fmt.NEVER, Tone.MUTED),
                cell(first_line(job.last_error) or job.error_code or fmt.NEVER),
                cell(job.worker_id or fmt.NEVER, Tone.MUTED),
            ),
        )
        for job in frame.page.rows
    )
    return Table(columns, rows, (line(Span("none left", Tone.MUTED)),))
