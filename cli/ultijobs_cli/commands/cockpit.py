"""`tui`."""

from __future__ import annotations

import asyncio
import gc
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ultijobs.errors import CliBadFlag
from ultijobs_cli import options
from ultijobs_cli.app_tasks import AppTasks
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector_of
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import CommandFailed, Report
from ultijobs_cli.settings import database

if TYPE_CHECKING:
    from ultijobs_tui import entry

__all__ = ["tui"]

_INSTALL: Final = "pip install 'ultijobs[serve]'"


def tui(
    call: Invocation,
    job: Annotated[str | None, typer.Option("--job", metavar="ID", help="Open this job.")] = None,
    where: options.WhereText = None,
    queue: Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Open on this queue.")] = None,
    tenant: options.Tenant = None,
    view: Annotated[str, typer.Option("--view", metavar="VIEW", help="Open this screen.")] = "incident",
    read_only: Annotated[bool, typer.Option("--read-only", help="Disable every act.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the screen as text and exit.")] = False,
    refresh: Annotated[str, typer.Option("--refresh", metavar="TIME", help="How often to read the database.")] = "1s",
    ascii: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Draw without colours, like NO_COLOR.")] = False,
    no_mouse: Annotated[bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal.")] = False,
    theme: Annotated[str | None, typer.Option("--theme", metavar="NAME", help="The colour theme: ansi-dark, …")] = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Record everything that is read into a new file.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Play a recording; needs no database.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Where to start the recording: 14:02.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the cockpit to a browser, read-only.")] = False,
    serve_host: Annotated[
        str, typer.Option("--serve-host", metavar="HOST", help="The address to serve it on.")
    ] = "127.0.0.1",
    serve_port: Annotated[
        int, typer.Option("--serve-port", metavar="PORT", min=1, max=65535, help="The port to serve it on.")
    ] = 8000,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Allow an address that others can reach; the page has no login.")
    ] = False,
    read_write: Annotated[bool, typer.Option("--read-write", help="Allow acts from the page.")] = False,
    actor: options.Actor = None,
) -> Report:
    """Opens the cockpit: what is stuck, why, and how to fix it.

    With --app it can also run the tasks of the application.

    $ ultijobs tui
    $ ultijobs tui --read-only --where queue:billing
    $ ultijobs tui --once
    $ ultijobs tui --serve
    """
    if call.flags.json or call.flags.json_lines:
        raise options.bad("--json", "the cockpit has no JSON form", "ultijobs stats --json")
    if not once and not serve:
        options.need_terminal("ultijobs tui --once")
    gc.disable()  # as in __main__
    from ultijobs_tui import entry, keyfile  # noqa: PLC0415 - no other command loads textual

    gc.enable()

    chosen = entry.Options(
        job=job,
        where=" ".join(where) if where else None,
        view=view,
        queue=queue,
        tenant=tenant,
        theme=theme,
        keys=keyfile.load_keys(),
        read_only=read_only or (serve and not read_write),
        once=once,
        refresh=options.span_of("--refresh", refresh).total_seconds(),
        no_color=no_color,
        no_mouse=no_mouse,
        ascii=ascii,
        record=record,
        replay=replay,
        at=at,
        actor=actor,
    )
    if replay is not None:
        code = entry.replay(chosen)
    else:
        entry.check(chosen)
        url, schema = database(call.flags)
        if serve:
            return _serve(call, url, schema, chosen, (serve_host, serve_port, allow_remote))
        tasks = AppTasks(load_app(call), "tui") if call.flags.app else None
        code = entry.run(inspector_of(url, schema, actor=actor, asker="tui"), chosen, tasks=tasks)
    return Report("left", exit_code=ExitCode.DONE if code == 0 else ExitCode.FAILED)


def _serve(call: Invocation, url: str, schema: str, chosen: entry.Options, address: tuple[str, int, bool]) -> Report:
    """Until it is interrupted."""
    if find_spec("textual_serve") is None:
        raise CommandFailed.because(
            CliBadFlag("--serve needs the textual-serve package, which is not installed", fix=_INSTALL),
            exit_code=ExitCode.CANNOT_START,
            at="--serve",
        )
    from ultijobs_tui import serving  # noqa: PLC0415 - it needs the package

    place = serving.Address(*address)
    asyncio.run(_answering(url, schema))
    mode = "read-only" if chosen.read_only else "read and write"
    serving.serve(
        url,
        schema,
        chosen,
        place,
        lambda page: call.screen.note(f"the cockpit is at {page} ({mode}); ctrl+c ends it"),
    )
    return Report("left")


async def _answering(url: str, schema: str) -> None:
    """A page that could show nothing is not served."""
    async with inspector_of(url, schema):
        pass
