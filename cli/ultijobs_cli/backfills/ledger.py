"""`backfill --list`: the ledger, newest first."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from ultijobs.inspection import Inspector, PassRow, PassStatus, remaining_of
from ultijobs_cli import wording
from ultijobs_cli.jsonform import columns
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Block, Cell, Column, Tone, grid

__all__ = ["looking", "pass_data"]

_TONES: Final[dict[str, Tone]] = {"running": "blue", "completed": "green", "failed": "red", "cancelled": "yellow"}


def looking(
    api: Inspector, *, name: str | None, statuses: Sequence[PassStatus], limit: int
) -> Callable[[], Awaitable[Report]]:
    """One look at the ledger."""

    async def look() -> Report:
        rows = await api.passes(name=name, statuses=statuses, limit=limit)
        now = await api.now()
        summary = wording.plural(len(rows), "pass", "passes")
        data = {"rows": [pass_data(row) for row in rows], "next": None, "as_of": now}
        return Report(summary, data, [_table(rows, now)], rows="rows")

    return look


def pass_data(row: PassRow) -> dict[str, object]:
    """The columns of a pass, its cursor as a value, and how long it took."""
    end = _end(row)
    return {
        **columns(row),
        "cursor": _value(row.cursor),
        "in_hand_to": _value(row.in_hand_to),
        "duration_ms": None if end is None else end - row.started_at,
    }


def _value(text: str | None) -> object:
    return None if text is None else json.loads(text)


def _end(row: PassRow) -> datetime | None:
    """When the pass ended, or was last heard of; None while it runs."""
    return None if row.status == PassStatus.RUNNING else row.completed_at or row.updated_at


def _table(rows: Sequence[PassRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("BACKFILL", lambda row: Cell(row.name, "bold"), wide=True),
            Column("STATUS", lambda row: Cell(row.status, _TONES.get(row.status, ""))),
            Column("ROWS", lambda row: f"{row.rows:,}", right=True),
            Column("PAGES", lambda row: f"{row.batches:,}", rank=2, right=True),
            Column("LEFT", _left, right=True),
            Column("STARTED", lambda row: f"{wording.since(row.started_at, now)} ago", rank=1),
            Column("TOOK", lambda row: wording.since(row.started_at, _end(row) or now), rank=1, right=True),
            Column("JOB", lambda row: wording.tail(row.job_id)),
            Column("ENVIRONMENT", lambda row: wording.text(row.environment), rank=3),
            Column("VERSION", lambda row: wording.text(row.app_version), rank=4),
            Column(
                "ERROR", lambda row: Cell(wording.failure(row.error_code, row.last_error), "red"), wide=True, rank=1
            ),
        ],
        empty="no backfill has run yet",
    )


def _left(row: PassRow) -> str:
    left = remaining_of(row)
    return wording.NONE if left is None else wording.count(left)
