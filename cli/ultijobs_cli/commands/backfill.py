"""`backfill`: what would run, what is pending, the ledger; with `--write` it asks for passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ultijobs.errors import CliBadFlag
from ultijobs.inspection import PassStatus
from ultijobs_cli import options
from ultijobs_cli.backfills import ledger, pending, starting
from ultijobs_cli.backfills.declared import declarations
from ultijobs_cli.command import Invocation
from ultijobs_cli.completing import backfill_names
from ultijobs_cli.connect import inspector
from ultijobs_cli.report import Report
from ultijobs_cli.watch import watching

__all__ = ["backfill"]


async def backfill(
    call: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The backfill.", show_default=False, autocompletion=backfill_names),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every backfill that is pending, failed or cancelled.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Start the passes; without it nothing is changed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also start a pass where one has completed.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show the ledger: what became of each pass.")] = False,
    pending_: Annotated[
        bool, typer.Option("--pending", help="Show what has not been done here; exit 1 if anything.")
    ] = False,
    status: Annotated[
        list[PassStatus] | None, typer.Option("--status", metavar="STATUS", help="With --list: only this status.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1_000, help="With --list: show at most this many.")
    ] = 100,
    watch: options.Watch = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="The default: without --write nothing is changed.")
    ] = False,
    reason: options.Reason = None,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Shows backfills, and starts passes.

    With a name, or --all, it shows what a pass would touch and whether it may run; --write starts it. Declarations
    come from the catalogue that workers and `migrate --app` write. With --app they come from the application's own
    code, and its count() says how many rows are left.

    $ ultijobs backfill --pending
    $ ultijobs backfill fill_region
    $ ultijobs backfill fill_region --write --reason "after the import"
    $ ultijobs backfill --all --write
    $ ultijobs backfill --list --watch
    """
    forms = [flag for flag, given in (("--list", list_), ("--pending", pending_), ("--all", all_)) if given]
    if write and dry_run:
        raise options.bad("--dry-run", "cannot be combined with --write", "give one of them")
    _refuse_what_does_not_fit(forms, name, write=write, force=force, watch=watch, status=status)
    if list_:
        async with inspector(call) as api:
            look = ledger.looking(api, name=name, statuses=status or (), limit=limit)
            return await watching(call, look, watch=watch)
    declared = await declarations(call)
    async with inspector(call, actor=actor) as api:
        there = await declared.known(api)
        if pending_:
            return await watching(call, pending.looking(api, there), watch=watch)
        return await starting.report(api, there, name=name, write=write, force=force, reason=reason)


def _refuse_what_does_not_fit(
    forms: Sequence[str],
    name: str | None,
    *,
    write: bool,
    force: bool,
    watch: bool,
    status: Sequence[PassStatus] | None,
) -> None:
    if len(forms) > 1:
        raise CliBadFlag(f"{forms[0]} and {forms[1]} exclude each other", fix="give one of them")
    form = forms[0] if forms else None
    if form is None and name is None:
        raise CliBadFlag("no backfill is named", fix="ultijobs backfill --pending")
    if name is not None and form in {"--all", "--pending"}:
        raise CliBadFlag(f"{form} takes no name", fix=f"leave {name} out, or leave {form} out")
    looks = form in {"--list", "--pending"}
    for flag, given, fits in (
        ("--write", write, not looks),
        ("--force", force, not looks),
        ("--watch", watch, looks),
        ("--status", status is not None, form == "--list"),
    ):
        if given and not fits:
            raise options.bad(flag, f"has no effect with {form or 'a name'}", "leave it out")
