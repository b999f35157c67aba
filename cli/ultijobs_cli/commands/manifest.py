"""`manifest`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ultijobs_cli import wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Block, Cell, Column, Paragraph, grid

__all__ = ["manifest"]

Row = Mapping[str, Any]


def manifest(call: Invocation) -> Report:
    """Prints what an application declares.

    The same code gives the same output, byte for byte, on every machine, so it can be kept beside the code and
    compared. It reads no database, and contains no addresses and no secrets.

    $ ultijobs manifest --app shop.main:app
    $ ultijobs manifest --app shop.main:app --json
    """
    from ultijobs._definitions.manifest import manifest as described  # noqa: PLC0415 - it loads pydantic

    data = described(load_app(call, database=False))
    jobs, tasks, backfills = (cast("Sequence[Row]", data[kind]) for kind in ("jobs", "tasks", "backfills"))
    counted = ((jobs, "job"), (tasks, "task"), (backfills, "backfill"))
    summary = ", ".join(wording.plural(len(rows), what) for rows, what in counted)
    return Report(summary, data, _blocks(jobs, tasks, backfills) or [Paragraph("nothing is declared")])


def _blocks(jobs: Sequence[Row], tasks: Sequence[Row], backfills: Sequence[Row]) -> list[Block]:
    shown: list[Block] = []
    if jobs:
        columns: list[Column[Row]] = [
            _named("JOB"),
            Column("QUEUE", lambda row: row["queue"], wide=True),
            Column("ATTEMPTS", lambda row: f"{row['attempts']} {row['backoff']}", rank=1),
            Column("TIMEOUT", lambda row: wording.age(row["timeout_ms"]), rank=2, right=True),
            Column("CAP", lambda row: _or_none(row["concurrency"]), rank=2, right=True),
            Column("UNIQUE", lambda row: row["unique"], rank=3),
            Column("TENANT", lambda row: row["tenant"], rank=3),
        ]
        shown.append(grid(jobs, columns, empty=""))
    if tasks:
        columns = [
            _named("TASK"),
            Column("CRON", lambda row: row["cron"], wide=True),
            Column("ZONE", lambda row: row["tz"]),
            Column("CATCH-UP", lambda row: row["catch_up"], rank=1),
        ]
        shown.append(grid(tasks, columns, empty=""))
    if backfills:
        columns = [
            _named("BACKFILL"),
            Column("QUEUE", lambda row: row["queue"], wide=True),
            Column("PAGES", lambda row: f"of {row['batch']:,}, {row['rate']:g}/s", rank=1),
            Column("REQUIRES", lambda row: _or_none(row["requires"]), rank=2),
            Column("ENVIRONMENTS", lambda row: ", ".join(row["environments"]) or wording.NONE, rank=2, wide=True),
        ]
        shown.append(grid(backfills, columns, empty=""))
    return shown


def _named(kind: str) -> Column[Row]:
    return Column(kind, lambda row: Cell(row["name"], "bold"), wide=True)


def _or_none(value: object) -> str:
    return wording.NONE if value is None else str(value)
