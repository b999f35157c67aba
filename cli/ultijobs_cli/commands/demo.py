"""`demo`: a whole application on an embedded PostgreSQL, with the cockpit in front."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from ultijobs._durations import parse
from ultijobs_cli.command import Invocation
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.options import need_terminal
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Cell, Pairs

__all__ = ["demo", "told"]

_FEW: Final = 2
"""Up to so many counts a zero is told too: the invariants are zeros when they hold."""


async def demo(
    call: Invocation,
    headless: Annotated[
        bool, typer.Option("--headless", help="Run without the cockpit; one round unless --for is given.")
    ] = False,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Repeat rounds for this long, then drain.")
    ] = None,
    incidents: Annotated[
        bool | None,
        typer.Option(
            "--incidents/--no-incidents", help="Add jobs that fail in typical ways; the default with the cockpit."
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, max=16, help="Worker processes.")] = 2,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Where its database is kept; by default in the temporary folder."),
    ] = None,
) -> Report:
    """Shows ultijobs at work on an embedded PostgreSQL.

    It audits the Python distributions installed here, one job each: the job reads the RECORD, checks the hashes of
    the files against it and stores a report. To look at its queue from another shell, use
    `--database-url embedded:DIR`. Exits 0 if no acknowledged job was lost and none is left running without a worker.
    Everything that it started is stopped again.

    $ ultijobs demo
    $ ultijobs demo --headless --for 20s --json
    $ ultijobs demo --headless --incidents --for 1m
    """
    from ultijobs_cli.demo import run  # noqa: PLC0415 - the demo loads a database driver, the other commands need not

    if not headless:
        need_terminal("ultijobs demo --headless")
    options = run.Options(
        seconds=None if for_ is None else parse(for_, what="--for").total_seconds(),
        incidents=not headless if incidents is None else incidents,
        workers=workers,
        directory=directory,
    )
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        outcome = await run.run(options, tell=call.screen.note, screen=None if headless else run.cockpit)
    except asyncio.CancelledError:
        if sys.exc_info()[0] is not None and task.cancelling():
            raise KeyboardInterrupt from None
        raise
    facts = dataclasses.asdict(outcome)
    return Report(
        _summary(outcome.rounds, outcome.files),
        facts,
        [Pairs(tuple((name, Cell(told(value))) for name, value in facts.items()))],
        exit_code=ExitCode.DONE if outcome.kept else ExitCode.FAILED,
        bare=True,
    )


def _summary(rounds: int, files: int) -> str:
    return f"audited {files:,} files in {rounds} round{'' if rounds == 1 else 's'}"


def told(value: object) -> str:
    """A fact in words. Of many counts only those that occur, so that the line fits a narrow terminal."""
    if isinstance(value, dict):
        counts = cast("dict[str, int]", value)
        shown = {name: count for name, count in counts.items() if count or len(counts) <= _FEW}
        return "  ".join(f"{name} {count:,}" for name, count in shown.items()) or "none"
    return f"{value:,}"
