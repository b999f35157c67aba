"""`jobs undo`: takes a retry or a cancel back."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ultijobs.inspection import Action, PlanOptions, Target
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
    """Takes a retry or a cancel back.

    Jobs that nobody has claimed since are what they were before it: state, attempts, reasons, run time, steps. What was
    claimed meanwhile or acted on again is left alone and told, as is a retry from a step, whose records are gone, and
    the cancel of what had started. `activity` shows the acts; each is remembered for a day.
    It shows what it would touch and asks; without a terminal it needs --yes.

    $ ultijobs jobs undo 5b1c07ad --dry-run
    $ ultijobs jobs undo 5b1c07ad --yes --reason "provider is still down"
    """
    chosen = PlanOptions(reason=reason, tenant=tenant, limit=limit)
    paced = options.pace_of(pace)
    if paced is not None:
        chosen = replace(chosen, batch=paced[0], pause=paced[1])
    async with inspector(call, actor=actor) as api:
        plan = await api.plan(Action.UNDO, Target(act=await api.find_act(act_ref)), chosen)
        return await act(call, api, plan, Consent(needed=True, yes=yes, dry_run=dry_run), [])
