"""One job whole, as data and as blocks."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from ultijobs.inspection import AttemptRecord, JobDetail, JobRow, StepRecord
from ultijobs_cli import wording
from ultijobs_cli.backfills.ledger import pass_data
from ultijobs_cli.jsonform import columns
from ultijobs_cli.tables import Block, Cell, Column, Pairs, Paragraph, grid

__all__ = ["blocks", "data"]


def data(detail: JobDetail, *, payloads: bool) -> dict[str, object]:
    """The row's columns and what belongs to it. Every key is there, null when absent; payloads only when asked for."""
    return {
        **columns(detail.row),
        "input": _value(detail.input) if payloads else None,
        "steps": [{**columns(step), "output": _value(step.output) if payloads else None} for step in detail.steps],
        "attempts": detail.attempts,
        "retry_delays_ms": detail.retry_delays_ms,
        "backfill": None if detail.backfill is None else pass_data(detail.backfill),
    }


def blocks(detail: JobDetail, now: datetime, *, payloads: bool) -> list[Block]:
    """The row, then what there is of error, steps, attempts, delays and payloads."""
    row = detail.row
    shown: list[Block] = [Pairs(tuple((name, Cell(value)) for name, value in _pairs(row, now) if value))]
    if row.last_error:
        shown.append(Paragraph(row.last_error, "red", "last error"))
    if detail.steps:
        shown.append(_steps(detail.steps))
    if detail.attempts:
        shown.append(_attempts(detail.attempts, now))
    if detail.retry_delays_ms:
        delays = ", ".join(wording.age(ms) for ms in detail.retry_delays_ms)
        shown.append(Paragraph(delays, title="retry delays still to come"))
    if payloads and detail.input is not None:
        shown.append(Paragraph(detail.input, title="input"))
    if payloads:
        shown.extend(Paragraph(s.output, title=f"output of {s.name}") for s in detail.steps if s.output is not None)
    return shown


def _pairs(row: JobRow, now: datetime) -> list[tuple[str, str | None]]:
    progress = row.progress
    done = "" if progress is None else wording.amount(progress.done)
    if progress is not None and progress.total:
        done += f" of {wording.amount(progress.total)}"
    return [
        ("job", row.name),
        ("id", str(row.id)),
        ("run", str(row.run_id) if row.run_id != row.id else None),
        ("state", row.state),
        (
            "stopped by" if row.stop_reason else "failed with",
            " ".join(filter(None, (row.stop_reason, row.error_code, row.fingerprint))) or None,
        ),
        ("waits for", None if row.waiting_on is None else str(row.waiting_on)),
        ("behind", None if row.behind is None else str(row.behind)),
        ("queue", row.queue),
        ("priority", str(row.priority) if row.priority else None),
        ("tenant", row.tenant_id),
        ("key", row.idempotency_key),
        ("attempt", wording.attempts(row).replace("/", " of ")),
        ("worker", row.worker_id),
        ("lease", _lease(row, now)),
        ("step", row.running_step),
        ("progress", " ".join(filter(None, (done, progress.message))) if progress else None),
        ("created", _moment(row.created_at, now)),
        ("due", _moment(row.run_at, now)),
        ("started", _moment(row.started_at, now)),
        ("finished", _moment(row.finished_at, now)),
        ("cancelled", row.cancel_reason),
        ("enqueued by", row.enqueued_by),
        ("code", row.code_version),
        ("trace", row.traceparent),
    ]


def _lease(row: JobRow, now: datetime) -> str | None:
    if row.lease_until is None:
        return None
    if row.lease_until > now:
        return f"{row.lease_no}, ends {wording.until(row.lease_until, now)}"
    return f"{row.lease_no}, lapsed {wording.since(row.lease_until, now)} ago"


def _moment(at: datetime | None, now: datetime) -> str | None:
    if at is None:
        return None
    relative = wording.until(at, now) if at > now else f"{wording.since(at, now)} ago"
    return f"{wording.moment(at)} UTC, {relative}"


def _steps(steps: list[StepRecord]) -> Block:
    def took(step: StepRecord) -> str:
        if step.completed_at is not None:
            return _span(step.completed_at - step.started_at)
        return f"until {wording.moment(step.wake_at)}" if step.wake_at else wording.NONE

    def waits(step: StepRecord) -> str:
        return f"{step.event} {step.match}" if step.match else step.event or ""

    return grid(
        steps,
        [
            Column("STEP", lambda step: step.name, wide=True),
            Column("KIND", lambda step: step.kind, rank=2),
            Column("STATUS", lambda step: Cell(step.status, "red" if step.status == "failed" else "")),
            *([Column("EVENT", waits, rank=1, wide=True)] if any(step.event for step in steps) else []),
            Column("TRIES", lambda step: str(step.tries), rank=2, right=True),
            Column("TOOK", took, right=True),
            Column("ERROR", lambda step: Cell(step.error or "", "red"), rank=1, wide=True),
        ],
        empty="no steps recorded",
    )


def _attempts(attempts: list[AttemptRecord], now: datetime) -> Block:
    return grid(
        attempts,
        [
            Column("ATTEMPT", lambda attempt: str(attempt.attempt), right=True),
            Column("OUTCOME", lambda attempt: attempt.outcome),
            Column("ENDED", lambda attempt: f"{wording.since(attempt.ended_at, now)} ago", right=True),
            Column("WORKER", lambda attempt: wording.text(attempt.worker_id), rank=2, wide=True),
            Column("ERROR", lambda a: Cell(wording.failure(a.error_code, a.error), "red"), rank=1, wide=True),
        ],
        empty="no attempt recorded",
    )


def _span(value: timedelta) -> str:
    milliseconds = value / timedelta(milliseconds=1)
    return f"{milliseconds:.0f}ms" if milliseconds < 1_000 else wording.duration(value)  # noqa: PLR2004 - one second


def _value(text: str | None) -> object:
    """Stored JSON text as the value it is; what is no JSON any more stays text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
