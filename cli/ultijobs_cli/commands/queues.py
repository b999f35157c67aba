"""`queues ls`, `queues pause`, `queues resume`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import typer

from ultijobs.inspection import Action, PlanOptions, QueueRow, Target
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.completing import queue_names
from ultijobs_cli.connect import inspector
from ultijobs_cli.remote import order
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Block, Cell, Column, Tone, grid
from ultijobs_cli.watch import watching

__all__ = ["ls", "pause", "queue_table", "resume"]

QueueName = Annotated[
    str,
    typer.Argument(metavar="QUEUE", help="The queue's name.", callback=options.not_empty, autocompletion=queue_names),
]

_TONES: Final[dict[str, Tone]] = {"paused": "yellow", "unserved": "red"}


async def ls(call: Invocation, watch: options.Watch = False) -> Report:
    """Lists the queues: what waits, what runs, and who serves them.

    $ ultijobs queues ls
    $ ultijobs queues ls --json
    """
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.queues()
            now = await api.now()
            return Report(
                summary=wording.plural(len(rows), "queue"),
                data={"rows": rows, "next": None, "as_of": now},
                blocks=[queue_table(rows, now)],
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def pause(
    call: Invocation,
    queue: QueueName,
    reason: options.Reason = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Resume automatically after this time: 30m.")
    ] = None,
    dry_run: options.DryRun = False,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Stops claims from a queue; running jobs go on.

    $ ultijobs queues pause billing --reason "bank is down" --for 30m
    """
    span = options.span_of("--for", duration)
    if span is not None and not span:
        raise options.bad("--for", "must be more than zero", "write --for 30m, or leave it out to pause until a resume")
    async with inspector(call, actor=actor) as api:
        chosen = PlanOptions(reason=reason, duration=span)
        return await order(
            api, await api.plan(Action.PAUSE, Target(queue=queue), chosen), {"queue": queue}, dry_run=dry_run
        )


async def resume(
    call: Invocation,
    queue: QueueName,
    reason: options.Reason = None,
    dry_run: options.DryRun = False,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Lets jobs of a paused queue be claimed again.

    $ ultijobs queues resume billing
    """
    async with inspector(call, actor=actor) as api:
        chosen = PlanOptions(reason=reason)
        return await order(
            api, await api.plan(Action.RESUME, Target(queue=queue), chosen), {"queue": queue}, dry_run=dry_run
        )


def queue_table(rows: list[QueueRow], now: datetime) -> Block:
    """The queues as `queues ls` and `stats` show them."""
    return grid(
        rows,
        [
            Column("QUEUE", lambda row: Cell(row.queue, "bold"), wide=True),
            Column("STATE", lambda row: Cell(row.state, _TONES.get(row.state, "green"))),
            Column("READY", lambda row: wording.count(row.ready), right=True),
            Column("OLDEST", lambda row: wording.age(row.oldest_ready_ms), right=True),
            Column("RUNS", lambda row: wording.slots(row.running, row.capacity), right=True),
            Column("DELAYED", lambda row: wording.count(row.delayed), rank=1, right=True),
            Column("SUSPENDED", lambda row: wording.count(row.suspended), rank=2, right=True),
            Column("DEAD", lambda row: Cell(wording.count(row.dead), "red" if row.dead.value else ""), right=True),
            Column("WORKERS", lambda row: str(row.workers), rank=1, right=True),
            Column("NOTE", lambda row: _note(row, now), rank=3, wide=True),
        ],
        empty="no queues yet",
    )


def _note(row: QueueRow, now: datetime) -> str:
    if row.state != "paused":
        return ""
    until = f", resumes {wording.until(row.resume_at, now)}" if row.resume_at else ""
    why = f": {row.pause_reason}" if row.pause_reason else ""
    return f"by {row.paused_by or 'someone'} {wording.since(row.paused_at, now)} ago{why}{until}"
