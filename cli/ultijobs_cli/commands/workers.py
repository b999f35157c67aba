"""`workers ls`, `workers drain`, `workers resume`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import typer

from ultijobs.inspection import Action, PlanOptions, Target, WorkerRow
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.completing import worker_names
from ultijobs_cli.connect import inspector
from ultijobs_cli.remote import order
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Block, Cell, Column, Tone, grid
from ultijobs_cli.watch import watching

__all__ = ["drain", "ls", "resume", "state_of", "uptime"]

WorkerName = Annotated[
    str,
    typer.Argument(
        metavar="WORKER",
        help="The worker_id that `workers ls` shows.",
        callback=options.not_empty,
        autocompletion=worker_names,
    ),
]

_TONES: Final[dict[str, Tone]] = {
    "healthy": "green",
    "wedged": "red",
    "gone": "red",
    "draining": "yellow",
    "drained": "yellow",
}


async def ls(call: Invocation, watch: options.Watch = False) -> Report:
    """Lists the workers, and whether they are making progress.

    $ ultijobs workers ls
    $ ultijobs workers ls --watch
    """
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.workers()
            now = await api.now()
            return Report(
                summary=wording.plural(len(rows), "worker"),
                data={"rows": rows, "next": None, "as_of": now},
                blocks=[_table(rows, now)],
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def drain(
    call: Invocation,
    worker: WorkerName,
    leave: Annotated[bool, typer.Option("--exit", help="Also end the process.")] = False,
    reason: options.Reason = None,
    dry_run: options.DryRun = False,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Tells a worker to finish its jobs and claim no more.

    It then stays idle as `drained`; with --exit the process ends.

    $ ultijobs workers drain web-3:4711
    $ ultijobs workers drain web-3:4711 --exit
    """
    async with inspector(call, actor=actor) as api:
        chosen = PlanOptions(reason=reason, exit=leave)
        return await order(
            api, await api.plan(Action.DRAIN_WORKER, Target(worker=worker), chosen), {"worker": worker}, dry_run=dry_run
        )


async def resume(
    call: Invocation,
    worker: WorkerName,
    reason: options.Reason = None,
    dry_run: options.DryRun = False,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Lets a drained worker claim again.

    $ ultijobs workers resume web-3:4711
    """
    async with inspector(call, actor=actor) as api:
        chosen = PlanOptions(reason=reason)
        return await order(
            api,
            await api.plan(Action.RESUME_WORKER, Target(worker=worker), chosen),
            {"worker": worker},
            dry_run=dry_run,
        )


def uptime(row: WorkerRow, now: datetime) -> str:
    """How long it has run, or ran until its last beat."""
    return wording.since(row.started_at, row.heartbeat_at if row.ended else now)


def _table(rows: list[WorkerRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("WORKER", lambda row: Cell(row.worker_id, "bold"), wide=True),
            Column("STATE", lambda row: state_of(row, now)),
            Column("RUNS", lambda row: f"{0 if row.ended else row.running}/{row.concurrency}", right=True),
            Column("CLAIMED", lambda row: _ago(row.claimed_at, now), right=True),
            Column("SETTLED", lambda row: _ago(row.settled_at, now), rank=1, right=True),
            Column("BEAT", lambda row: _ago(row.heartbeat_at, now), rank=1, right=True),
            Column("LAG", lambda row: f"{row.loop_lag_ms}ms", rank=2, right=True),
            Column("MEMORY", lambda row: f"{row.rss_bytes / 2**20:.0f}M", rank=3, right=True),
            Column("QUEUES", lambda row: ",".join(row.queues), rank=2, wide=True),
            Column("UP", lambda row: uptime(row, now), rank=2, right=True),
            Column("CODE", lambda row: wording.text(row.code_version), rank=4, wide=True),
        ],
        empty="no workers",
    )


def state_of(row: WorkerRow, now: datetime) -> Cell:
    """With a time, it is the end of a process: one that drained in good order is no trouble, and no hand either."""
    if row.stopped_at is not None:
        return Cell(f"{row.state} {wording.since(row.stopped_at, now)}", "dim")
    return Cell(row.state, _TONES.get(row.state, ""))


def _ago(at: datetime | None, now: datetime) -> str:
    return wording.since(at, now)
