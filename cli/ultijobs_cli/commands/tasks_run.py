"""`tasks run`."""

from __future__ import annotations

from typing import Annotated

import typer

from ultijobs.errors import AppUnusable
from ultijobs.inspection import Inspector
from ultijobs_cli import options, wording
from ultijobs_cli.app_tasks import AppTasks
from ultijobs_cli.command import Invocation
from ultijobs_cli.commands.tasks import TaskName
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.jsonform import columns
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import CommandFailed, Report
from ultijobs_cli.tables import Cell, Column, Paragraph, grid

__all__ = ["run"]


async def run(
    call: Invocation,
    name: TaskName,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be enqueued; change nothing.")] = False,
    _yes: options.NeverAsks = False,
    reason: options.Reason = None,
    actor: options.Actor = None,
) -> Report:
    """Runs a task now, outside of its schedule.

    Its jobs are enqueued under their own keys, without the slot. It needs the application, whose code says which
    jobs these are. The schedule is not affected.

    $ ultijobs tasks run nightly --dry-run --app shop.main:app
    $ ultijobs tasks run nightly --app shop.main:app --reason "after the outage"
    """
    app = load_app(call)
    tasks = AppTasks(app, "cli")
    if dry_run:
        return await _foreseen(tasks, name)
    try:
        await _jobs(tasks, name)
        await tasks.open()
        api = Inspector(app.driver, actor=actor, source="cli")
        answers = await api.run_task(name, lambda: tasks.enqueue(name), reason=reason)
    finally:
        await tasks.close()
    fresh = sum(not answer.deduped for answer in answers)
    live = f", {len(answers) - fresh} were live already" if fresh < len(answers) else ""
    summary = f"{name} enqueued {wording.plural(fresh, 'job')}{live}"
    table = grid(
        answers,
        [
            Column("ID", lambda row: wording.tail(row.id)),
            Column("STATE", lambda row: str(row.state)),
            Column("", lambda row: Cell("was live already", "dim") if row.deduped else ""),
        ],
        empty="it asked for nothing",
    )
    data = {"name": name, "matched": len(answers), "rows": [columns(answer) for answer in answers]}
    return Report(summary, data, [Paragraph(summary), table], rows="rows")


async def _jobs(tasks: AppTasks, name: str) -> list[tuple[str, str]]:
    try:
        return await tasks.jobs(name)
    except AppUnusable as raised:
        raise CommandFailed.because(raised, exit_code=ExitCode.FAILED, at=name) from raised


async def _foreseen(tasks: AppTasks, name: str) -> Report:
    rows = [{"name": job, "queue": queue} for job, queue in await _jobs(tasks, name)]
    summary = f"{name} would enqueue {wording.plural(len(rows), 'job')}"
    table = grid(
        rows,
        [Column("JOB", lambda row: Cell(row["name"], "bold")), Column("QUEUE", lambda row: row["queue"])],
        empty="it asks for nothing",
    )
    data = {"name": name, "matched": len(rows), "dry_run": True, "rows": rows}
    return Report(summary, data, [Paragraph(summary), table], rows="rows")
