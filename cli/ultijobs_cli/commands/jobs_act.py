"""`jobs retry`, `jobs cancel`: on ids, or on all that a filter matches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

import typer

from ultijobs.errors import JobUnknown
from ultijobs.inspection import Action, Inspector, PlanOptions, Target
from ultijobs_cli import options
from ultijobs_cli.acts import Consent, Unknown, act, nothing_known
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.report import Report

__all__ = ["cancel", "retry"]

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs, or their last 6 or more hex digits.")]


async def retry(
    call: Invocation,
    ids: Ids = None,
    where: options.WhereText = None,
    from_step: Annotated[
        str | None, typer.Option("--from-step", metavar="STEP", help="Run this step again, and every step after it.")
    ] = None,
    only_step: Annotated[
        str | None, typer.Option("--only-step", metavar="STEP", help="Run only this step again; later ones replay.")
    ] = None,
    done: Annotated[bool, typer.Option("--done", help="Also retry jobs that are done.")] = False,
    reason: options.Reason = None,
    tenant: options.Tenant = None,
    as_of: options.AsOf = None,
    limit: options.Canary = None,
    pace: options.Pace = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    actor: options.Actor = None,
) -> Report:
    """Runs dead, failed or cancelled jobs again.

    Completed steps are replayed from storage, not repeated.
    With --where it shows what it would touch and asks for confirmation; without a terminal it needs --yes.

    $ ultijobs jobs retry 1f3a9c20
    $ ultijobs jobs retry 1f3a9c20 --from-step charge --reason "price list fixed"
    $ ultijobs jobs retry --where "state:dead fp:7f3a" --dry-run
    $ ultijobs jobs retry --where "state:dead fp:7f3a" --limit 1 --yes
    $ ultijobs jobs retry --where "state:dead fp:7f3a" --pace 500/1s --yes
    """
    if from_step is not None and only_step is not None:
        raise options.bad("--only-step", "cannot be combined with --from-step", "give one of them")
    chosen = options.plan_options(reason=reason, tenant=tenant, as_of=as_of, limit=limit, pace=pace)
    chosen = replace(chosen, from_step=from_step, only_step=only_step, allow_done=done)
    return await _act(call, Action.RETRY, ids, where, chosen, yes=yes, dry_run=dry_run, actor=actor)


async def cancel(
    call: Invocation,
    ids: Ids = None,
    where: options.WhereText = None,
    reason: options.Reason = None,
    tenant: options.Tenant = None,
    as_of: options.AsOf = None,
    limit: options.Canary = None,
    pace: options.Pace = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    actor: options.Actor = None,
) -> Report:
    """Cancels jobs that have not ended.

    A running job is told to stop, and can no longer write anything.
    With --where it shows what it would touch and asks for confirmation; without a terminal it needs --yes.

    $ ultijobs jobs cancel 1f3a9c20 --reason "customer left"
    $ ultijobs jobs cancel --where "queue:bulk state:ready" --yes
    """
    chosen = options.plan_options(reason=reason, tenant=tenant, as_of=as_of, limit=limit, pace=pace)
    return await _act(call, Action.CANCEL, ids, where, chosen, yes=yes, dry_run=dry_run, actor=actor)


async def _act(
    call: Invocation,
    action: Action,
    ids: list[str] | None,
    where: list[str] | None,
    chosen: PlanOptions,
    *,
    yes: bool,
    dry_run: bool,
    actor: str | None,
) -> Report:
    text = " ".join(where or ()).strip()
    if bool(ids) == bool(text):
        told = "both ids and --where were given" if ids else "neither an id nor a filter was given"
        raise options.bad("--where", told, "give ids, or --where with at least one word")
    target: Target
    refused: list[Unknown] = []
    async with inspector(call, actor=actor) as api:
        if ids:
            known, refused = await _known(api, ids, chosen.tenant)
            if not known:
                return nothing_known(refused)
            target = Target(ids=tuple(known))
        else:
            target = Target(where=options.filter_of(where, tenant=chosen.tenant), text=text)
        plan = await api.plan(action, target, chosen)
        return await act(call, api, plan, Consent(needed=bool(text), yes=yes, dry_run=dry_run), refused)


async def _known(api: Inspector, refs: list[str], tenant: str | None) -> tuple[list[UUID], list[Unknown]]:
    """The ids that exist, each once, and a refusal for each reference that names no job."""
    known: dict[UUID, None] = {}
    unknown: list[Unknown] = []
    for ref in refs:
        try:
            known[await api.find(ref, tenant=tenant)] = None
        except JobUnknown as error:
            unknown.append(Unknown(ref, error.code, error.cause))
    return list(known), unknown
