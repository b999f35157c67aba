"""Backfills: how far each is, how fast, what is left, when it is done, and what stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from ultijobs.inspection import BackfillRow, BackfillState
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.present.causes import first_line
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["BACKFILL_SORTS", "STALLED", "backfill_panel", "backfill_table", "backfills_summary", "share_of"]

BACKFILL_SORTS: Final = ("trouble", "name", "left", "started")
STALLED: Final = "X_BACKFILL_STALLED"
_BAR: Final = 10
_RATES: Final = 24
_TONES: Final = {
    BackfillState.PENDING: Tone.WARN,
    BackfillState.RUNNING: Tone.ACCENT,
    BackfillState.FAILED: Tone.BAD,
    BackfillState.CANCELLED: Tone.WARN,
    BackfillState.COMPLETED: Tone.GOOD,
    BackfillState.EXCLUDED: Tone.MUTED,
}
_WAITS: Final = {"ready": "waits: worker", "delayed": "waits: backoff"}
"""A live pass whose job does not run; a suspended one keeps to its pace."""
_TROUBLE: Final = (
    BackfillState.FAILED, BackfillState.CANCELLED, BackfillState.RUNNING, BackfillState.PENDING,
    BackfillState.COMPLETED, BackfillState.EXCLUDED,
)  # fmt: skip


def backfill_table(frame: Frame, look: Look, *, sort: str = BACKFILL_SORTS[0], find: str = "") -> Table:
    """One row per backfill; what has stopped short leads unless told otherwise."""
    columns = (
        Column("NAME", 10, 28, sort="name"),
        Column("STATE", 9, 18 if look.wide else 12, sort="trouble"),
        Column("ROWS", 7, 11, align="right"),
        Column("LEFT", 7, 11, align="right", sort="left"),
        Column("%", 4, align="right"),
        Column("PROGRESS", _BAR, drop=2),
        Column("ROWS/s", 7, align="right", drop=1),
        Column("ETA", 6, align="right"),
        Column("PAGES", 6, align="right", drop=5),
        Column("STARTED", 7, 11, align="right", drop=3, sort="started"),
        Column("RUN", 9, drop=6),
        Column("CURSOR", 8, grow=True, drop=4),
    )
    backfills = frame.backfills
    if backfills is None:
        return unread(columns, frame.failures.get("backfills"))
    shown = [row for row in backfills if holds(find, _fields(row))]
    if (said := nothing_found(columns, find, backfills if not shown else (), "backfill")) is not None:
        return said
    shown.sort(key=lambda row: (_ORDERS[sort](row), row.name))
    empty = (
        line("No backfill is declared."),
        line(Span("A worker, or ultijobs migrate --app MODULE:NAME, makes those of an application known.", Tone.MUTED)),
    )
    return Table(columns, tuple(_row(row, look) for row in shown), empty)


_ORDERS: Final[Mapping[str, Callable[[BackfillRow], float]]] = {
    "trouble": lambda row: _TROUBLE.index(row.state),
    "name": lambda row: 0,  # noqa: ARG005 - names alone decide
    "left": lambda row: -(row.remaining.value if row.remaining else 0),
    "started": lambda row: -(row.started_at.timestamp() if row.started_at else 0),
}


def _fields(row: BackfillRow) -> dict[str, str | None]:
    return {
        "name": row.name,
        "state": state_word(row),
        "queue": row.queue,
        "tenant": row.tenant,
        "code": row.error_code,
        "error": row.last_error,
    }


def _row(row: BackfillRow, look: Look) -> Row:
    share = share_of(row)
    return Row(
        row.name,
        (
            cell(row.name, Tone.STRONG if row.declared else None),
            _state(row),
            cell(f"{row.rows:,}" if look.wide else fmt.short(row.rows)),
            cell(_left(row, look)),
            cell(fmt.NEVER if share is None else f"{share:.0%}"),
            cell(_bar(share), _TONES[row.state]),
            cell(fmt.NEVER if row.rows_per_s is None else f"{row.rows_per_s:,.0f}"),
            cell(fmt.age(row.eta_ms or None)),
            cell(f"{row.batches:,}", Tone.MUTED),
            cell(look.since(row.started_at), Tone.MUTED),
            cell(fmt.short_id(row.run_id), Tone.MUTED),
            cell(row.cursor or fmt.NEVER, Tone.MUTED),
        ),
        Tone.MUTED if row.state is BackfillState.EXCLUDED or not row.declared else Tone.PLAIN,
    )


def _left(row: BackfillRow, look: Look) -> str:
    if row.remaining is None:
        return fmt.NEVER if row.state in {BackfillState.COMPLETED, BackfillState.EXCLUDED} else "?"
    return fmt.count(row.remaining) if look.wide else fmt.short_count(row.remaining)


def state_word(row: BackfillRow) -> str:
    """The state, and what it hides: that a pass is stalled, backs off, or waits for a worker."""
    if row.error_code == STALLED and row.state is BackfillState.FAILED:
        return "STALLED"
    if row.state is BackfillState.RUNNING and row.job_state in _WAITS:
        return _WAITS[row.job_state]
    return row.state.upper() if row.state in {BackfillState.FAILED, BackfillState.CANCELLED} else str(row.state)


def _state(row: BackfillRow) -> Cell:
    return cell(state_word(row), _TONES[row.state])


def share_of(row: BackfillRow) -> float | None:
    """How much is done, from 0 to 1; None while nobody has counted, or when the count is used up."""
    if row.state is BackfillState.COMPLETED:
        return 1.0
    if row.remaining is None or (row.remaining.kind == "estimate" and not row.remaining.value):
        return None  # More has come than was counted.
    whole = row.rows + row.remaining.value
    # What is left is an estimate: only the end is the end.
    return 0.0 if not whole else min(0.99 if row.remaining.value else 1.0, row.rows / whole)


def _bar(share: float | None) -> str:
    if share is None:
        return "·" * _BAR
    full = round(share * _BAR)
    return "▇" * full + "·" * (_BAR - full)


def backfills_summary(frame: Frame | None) -> list[str | Span]:
    """`5 declared · 1 running · 1 failed · 1 pending`."""
    if frame is None or frame.backfills is None:
        return []
    counted = Counter(row.state for row in frame.backfills)
    parts: list[str | Span] = [f"{sum(row.declared for row in frame.backfills)} declared"]
    for state in _TROUBLE:
        if counted[state]:
            parts += [" · ", Span(f"{counted[state]} {state}", _TONES[state])]
    return parts


def backfill_panel(row: BackfillRow | None, history: History, look: Look) -> list[Line]:
    """The backfill under the cursor: its pass, its declaration, what stopped it, what to press."""
    if row is None:
        return []
    updated = fmt.NEVER if row.updated_at is None else look.since(row.updated_at)
    pace = "" if row.rate is None else f" at {row.rate:g} pages/s"
    return [
        rule(row.name, f"{_pace(row, history, look)}{state_word(row)}"),
        line(
            Span(" pass ", Tone.MUTED), fmt.short_id(row.run_id), Span(" forced" if row.forced else "", Tone.WARN),
            Span("   started ", Tone.MUTED), fmt.clock(row.started_at, now=look.now),
            Span("   last page ", Tone.MUTED), updated,
            Span("   pages ", Tone.MUTED), f"{row.batches:,}", Span("   sweep ", Tone.MUTED), f"{row.sweep}",
            Span("   cursor ", Tone.MUTED), row.cursor or fmt.NEVER,
        ),
        line(
            Span(" declared ", Tone.MUTED),
            f"{row.batch or '?'} rows a page{pace}, queue {row.queue or '?'}" if row.declared else "no longer",
            Span("   requires ", Tone.MUTED), row.requires or "nothing",
            Span("   in ", Tone.MUTED), ", ".join(row.environments) or "every environment",
            Span("   here ", Tone.MUTED), row.environment or fmt.NEVER,
        ),
        _trouble(row),
        _press(row, look),
    ]  # fmt: skip


def _pace(row: BackfillRow, history: History, look: Look) -> str:
    """`rows/s ▂▃▅▆▇ · `, of a live pass that was seen for long enough."""
    if row.state is not BackfillState.RUNNING or row.run_id is None:
        return ""
    rates = history.pass_rates(row.run_id, _RATES if look.wide else _RATES // 2)
    return f"rows/s {fmt.spark(rates, _RATES)} · " if rates else ""


def _trouble(row: BackfillRow) -> Line:
    if row.last_error or row.error_code:
        said = first_line(row.last_error)
        code = row.error_code or ""
        return line(Span(f" {said if said.startswith(code) else f'{code} {said}'}".rstrip(), Tone.BAD))
    if row.changed:
        return line(Span(" its definition has changed since this pass", Tone.WARN))
    if row.state is BackfillState.EXCLUDED:
        return line(Span(" it does not belong to this environment", Tone.MUTED))
    return line(Span(" nothing is wrong", Tone.MUTED))


def _press(row: BackfillRow, look: Look) -> Line:
    parts: list[str | Span] = [Span(" press ", Tone.MUTED)]
    if row.job_id is not None:
        parts += [Span(look.key("open"), Tone.KEY), " its run   "]
    if row.state is BackfillState.RUNNING:
        parts += [
            Span(look.key("cancel"), Tone.KEY),
            " cancel the pass   ",
            Span(look.key("pause"), Tone.KEY),
            " pause its queue   ",
        ]
    elif row.state in {BackfillState.FAILED, BackfillState.CANCELLED} and row.error_code != STALLED:
        parts += [Span(look.key("retry"), Tone.KEY), " go on from the cursor   "]
    elif row.state is BackfillState.PENDING:
        parts += [Span(look.key("start"), Tone.KEY), " start   "]
    parts += [Span(look.key("force"), Tone.KEY), " force a new pass: shows first what it would touch"]
    return line(*parts)
