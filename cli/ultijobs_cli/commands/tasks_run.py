"""`tasks run`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from ultijobs.errors import DeclarationUnknown
from ultijobs.inspection import Inspector
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.commands.tasks import TaskName
from ultijobs_cli.connect import within_reach
from ultijobs_cli.jsonform import columns
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Cell, Column, Paragraph, grid

if TYPE_CHECKING:
    from ultijobs import App
    from ultijobs._definitions.task import TaskHandle

__all__ = ["run"]


async def run(
    call: Invocation,
    name: TaskName,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would ask for.")] = False,
    reason: options.Reason = None,
    actor: options.Actor = None,
) -> Report:
    """Runs a task now, outside of its schedule.

    Its jobs are enqueued under their plain keys. It needs the application, whose code says which jobs these are.
    The schedule goes on as if it had not happened.

    $ ultijobs tasks run nightly --dry-run --app shop.main:app
    $ ultijobs tasks run nightly --app shop.main:app --reason "after the outage"
    """
    app = load_app(call)
    task = _task(app, name)
    if dry_run:
        return await _foreseen(app, task)
    async with within_reach(app.driver.url):
        await app.open("cli")
    try:
        with app.ambient():
            api = Inspector(app.driver, actor=actor, source="cli")
            # Outside of any transaction on purpose, also where the application's own code must be in one.
            answers = await api.run_task(name, lambda: task.enqueue(tx=False), reason=reason)
    finally:
        async with asyncio.timeout(1):
            await app.close()
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


async def _foreseen(app: App[Any], task: TaskHandle) -> Report:
    from ultijobs._definitions.entries import entries  # noqa: PLC0415 - the commands that read do without pydantic

    with app.ambient():
        requests = await entries(task, datetime.now(ZoneInfo(task.tz)))
    rows = [{"name": request.handle.name, "queue": request.handle.queue} for request in requests]
    summary = f"{task.name} would enqueue {wording.plural(len(rows), 'job')}"
    table = grid(
        rows,
        [Column("JOB", lambda row: Cell(row["name"], "bold")), Column("QUEUE", lambda row: row["queue"])],
        empty="it asks for nothing",
    )
    data = {"name": task.name, "matched": len(rows), "dry_run": True, "rows": rows}
    return Report(summary, data, [Paragraph(summary), table], rows="rows")


def _task(app: App[Any], name: str) -> TaskHandle:
    task = app.registry.tasks.get(name)
    if task is None:
        near = get_close_matches(name, app.registry.tasks, 1, 0.4)
        known = ", ".join(app.registry.tasks) or "none"
        raise DeclarationUnknown(
            f"the application declares no task {name!r}; it has {known}",
            fix=f"ultijobs tasks run {near[0]}" if near else "add its module to App(tasks=[…])",
        )
    return task
