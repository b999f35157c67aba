"""`backfill --pending`: what has not been done in this environment; a pipeline reads the exit code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from ultijobs.errors import BackfillPending
from ultijobs.inspection import ALARMING, BackfillRow, BackfillState, Inspector
from ultijobs_cli import wording
from ultijobs_cli.backfills.declared import There
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.jsonform import columns
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.tables import Block, Cell, Column, Tone, grid

__all__ = ["TONES", "looking"]

TONES: Final[dict[str, Tone]] = {
    "pending": "yellow",
    "running": "blue",
    "failed": "red",
    "cancelled": "yellow",
    "completed": "green",
    "excluded": "dim",
}


def looking(api: Inspector, there: There) -> Callable[[], Awaitable[Report]]:
    """One look at everything that is declared."""

    async def look() -> Report:
        rows = await api.backfills(there.entries)
        now = await api.now()
        declared = [row for row in rows if row.declared]
        alarming = [row for row in declared if row.state in ALARMING]
        orphaned = [row.name for row in rows if not row.declared]
        where = f" in {there.environment}" if there.environment else ""
        summary = f"{len(alarming)} of {wording.plural(len(declared), 'backfill')} pending{where}"
        return Report(
            summary=summary,
            data={
                "environment": there.environment,
                "declared": len(declared),
                "pending": [row.name for row in alarming],
                "orphaned": orphaned,
                "rows": [columns(row) for row in declared],
                "next": None,
                "as_of": now,
            },
            blocks=[_table(declared, now)],
            findings=[_finding(row) for row in alarming],
            exit_code=ExitCode.FAILED if alarming else ExitCode.DONE,
            hints=[f"only the ledger knows {', '.join(orphaned)}: nobody declares it any more"] if orphaned else (),
            rows="rows",
        )

    return look


def _finding(row: BackfillRow) -> Finding:
    if row.state is BackfillState.PENDING:
        said = "has never run here"
    elif row.state is BackfillState.CANCELLED:
        said = f"was cancelled after {wording.plural(row.rows, 'row')}"
    else:
        said = f"stopped after {wording.plural(row.rows, 'row')}: {wording.failure(row.error_code, row.last_error)}"
    fix = f"ultijobs backfill {row.name} --write"
    if row.state is BackfillState.FAILED and row.job_id is not None:
        # Goes on at the page that failed; a new pass would begin at the beginning.
        fix = f"ultijobs jobs retry {row.job_id}"
    return Finding(BackfillPending.code, f"backfill {row.name} {said}", fix, BackfillPending.docs, at=row.name)


def _table(rows: Sequence[BackfillRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("BACKFILL", lambda row: Cell(row.name, "bold"), wide=True),
            Column("STATE", lambda row: Cell(row.state, TONES[row.state])),
            Column("ROWS", lambda row: f"{row.rows:,}", right=True),
            Column(
                "LEFT", lambda row: wording.NONE if row.remaining is None else wording.count(row.remaining), right=True
            ),
            Column(
                "ROWS/s", lambda row: wording.NONE if row.rows_per_s is None else f"{row.rows_per_s:,.0f}", right=True
            ),
            Column("ENDS IN", lambda row: wording.age(row.eta_ms), rank=1, right=True),
            Column("STARTED", lambda row: wording.since(row.started_at, now), rank=2, right=True),
            Column("JOB", lambda row: wording.tail(row.job_id), rank=1),
            Column("REQUIRES", lambda row: wording.text(row.requires), rank=3),
            Column("ENVIRONMENTS", lambda row: ", ".join(row.environments) or "all", rank=3),
            Column("", lambda row: Cell("changed since", "yellow") if row.changed else ""),
        ],
        empty="no backfill is declared",
    )
