"""`jobs undo`: takes a retry or a cancel back."""

from __future__ import annotations

from typing import Annotated

import typer

from ultijobs.inspection import Action, Target
from ultijobs_cli import options
from ultijobs_cli.acts import Consent, act
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.report import Report

__all__ = ["undo"]


async def undo(
    call: Invocation,
    act_ref: Annotated[
        str,
        typer.Argument(
            metavar="ACT", help="The act's id, or its last 6 or more hex digits.", callback=options.not_empty
        ),
    ],
    reason: options.Reason = None,
    tenant: options.Tenant = None,
    limit: options.Canary = None,
    pace: options.Pace = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    actor: options.Actor = None,
) -> Report:
    """Undoes a retry or a cancel.

    Jobs that no worker has claimed since become what they were before: state, attempts, reasons, run time and steps.
    Jobs that were claimed or acted on meanwhile are left alone and listed, and so are jobs that were retried from a
    step, whose records are gone, and those that had started before they were cancelled. `activity` shows the acts;
    each can be undone for a day. It shows what it would touch and asks for confirmation; without a terminal it needs
    --yes.

    $ ultijobs jobs undo 5b1c07ad --dry-run
    $ ultijobs jobs undo 5b1c07ad --yes --reason "provider is still down"
    """
    chosen = options.plan_options(reason=reason, tenant=tenant, as_of=None, limit=limit, pace=pace)
    async with inspector(call, actor=actor) as api:
        plan = await api.plan(Action.UNDO, Target(act=await api.find_act(act_ref)), chosen)
        return await act(call, api, plan, Consent(needed=True, yes=yes, dry_run=dry_run), [])
