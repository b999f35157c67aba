"""`prune`: removes what is over its time, now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from ultijobs.inspection import Expired, Inspector, Kept, KeptRow
from ultijobs_cli import options, wording
from ultijobs_cli.acts import agreed, at_terminal, stopping
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.settings import application
from ultijobs_cli.tables import Block, Cell, Column, Paragraph, grid

__all__ = ["prune"]

_OF: Final = {
    "application": "the retention of the application",
    "catalogue": "the retention that the applications of this schema declared",
    "defaults": "the default retention: no application has declared one",
}


async def prune(
    call: Invocation,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count; change nothing.")] = False,
    yes: options.Yes = False,
    reason: options.Reason = None,
    actor: options.Actor = None,
) -> Report:
    """Removes what is past its retention.

    Workers do the same on their own, once a minute. The retention is that of the application given by --app; without
    one, the longest that any application of the schema declared last; else the defaults. A longer retention of
    another application is always respected. Live jobs, the ledger of backfills and outbox rows that were set aside
    are never removed. On a terminal it asks for confirmation; elsewhere it goes ahead, as workers do.

    $ ultijobs prune --dry-run
    $ ultijobs prune --app shop.main:app --yes --reason "disk is full"
    """
    async with inspector(call, actor=actor) as api:
        found = await _expired(call, api)
        if dry_run or not found.total.value:
            return _report(found, {}, dry_run=dry_run)
        if not yes and at_terminal() and not (call.flags.json or call.flags.json_lines):
            call.screen.blocks_aside(_blocks(found, {}))
            if not agreed(f"remove {wording.plural(wording.count(found.total), 'row')}? [y/N] "):
                return Report("nothing changed", exit_code=ExitCode.FAILED)
        with stopping(call) as stopped:
            try:
                outcome = await api.prune(
                    found, reason=reason, on_progress=lambda gone: call.screen.progress(_progress(gone)), stop=stopped
                )
            finally:
                call.screen.progress("")
    exit_code = ExitCode.INTERRUPTED if outcome.stopped else ExitCode.DONE
    return _report(found, outcome.deleted, exit_code=exit_code, activity_id=str(outcome.activity_id))


async def _expired(call: Invocation, api: Inspector) -> Expired:
    if not application(call.flags):
        return await api.expired()
    from ultijobs._definitions.catalogue import catalogue  # noqa: PLC0415 - only where an application is loaded

    app = load_app(call)
    entries = catalogue(
        app.registry, redact=app.redact, retention=app.retention, limits=app.limits, code_version=None, environment=None
    )
    return await api.expired(app.retention, entries)


def _report(
    found: Expired,
    deleted: Mapping[Kept, int],
    *,
    dry_run: bool = False,
    exit_code: ExitCode = ExitCode.DONE,
    activity_id: str | None = None,
) -> Report:
    gone = sum(deleted.values())
    matched = wording.plural(wording.count(found.total), "row")
    if dry_run:
        summary = f"prune: would remove {matched}"
    elif activity_id is None:
        summary = "prune: nothing is over its time"
    else:
        summary = f"prune: removed {wording.plural(gone, 'row')}"
        summary += ", stopped before the rest" if exit_code is ExitCode.INTERRUPTED else ""
    return Report(
        summary,
        {
            "dry_run": dry_run,
            "matched": found.total,
            "deleted": gone,
            "retention": found.source,
            "rows": found.rows(deleted),
            "next": None,
            "as_of": found.as_of,
            "activity_id": activity_id,
        },
        [*_blocks(found, deleted), Paragraph(summary)],
        exit_code=exit_code,
        rows="rows",
    )


def _blocks(found: Expired, deleted: Mapping[Kept, int]) -> list[Block]:
    columns: list[Column[KeptRow]] = [
        Column("WHAT", lambda row: Cell(row.kind, "bold")),
        Column("KEPT FOR", lambda row: "its own time" if row.keep_ms is None else wording.age(row.keep_ms)),
        Column("OVER IT", lambda row: wording.count(row.expired), right=True),
    ]
    if deleted:
        columns.append(Column("REMOVED", lambda row: f"{row.deleted:,}", right=True))
    table = grid(found.rows(deleted), columns, empty="nothing is kept")
    return [table, Paragraph(f"by {_OF[found.source]}", "dim")]


def _progress(gone: Mapping[Kept, int]) -> str:
    return "prune: " + ", ".join(f"{count:,} {kind}" for kind, count in gone.items() if count)
