"""`jobs drain`: moves a queue to another database."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ultijobs.errors import Invariant
from ultijobs.inspection import Action, Field, Plan, Target, whither
from ultijobs_cli import options
from ultijobs_cli.acts import Consent, act
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.report import CommandFailed, Report
from ultijobs_cli.settings import schema_of

__all__ = ["drain"]


async def drain(
    call: Invocation,
    to: Annotated[
        str, typer.Option("--to", metavar="URL", help="The database to move the jobs to; it must be migrated.")
    ],
    to_schema: Annotated[
        str | None, typer.Option("--to-schema", metavar="NAME", help="The schema there; by default the same as here.")
    ] = None,
    queue: options.Queue = None,
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
    """Moves a queue to another database, whole, job by job.

    Point the application at the new database first. The queue is paused, and stays paused. Waiting jobs keep their
    id, steps, key, tenant, attempts and run time; each is verified there before it is cancelled here, with the
    reason. Running jobs stay, and make it exit 1. If it is interrupted at any point, run the same command again.

    $ ultijobs jobs drain --queue billing --to postgresql://db2/shop --dry-run
    $ ultijobs jobs drain --queue billing --to postgresql://db2/shop --yes
    $ ultijobs jobs drain --where "queue:billing state:dead" --to postgresql://db2/shop --pace 500/1s --yes
    """
    text = " ".join(where or ()).strip()
    if bool(queue) == bool(text):
        told = "both --queue and --where" if queue else "neither --queue nor --where"
        raise options.bad("--queue", f"{told} were given", "give --queue NAME, or --where with queue:NAME in it")
    chosen = options.plan_options(reason=reason, tenant=tenant, as_of=as_of, limit=limit, pace=pace)
    chosen = replace(chosen, to=to, to_schema=to_schema or schema_of(call.flags))
    target = Target(queue=queue) if queue else Target(where=options.filter_of(where, tenant=tenant), text=text)
    async with inspector(call, actor=actor) as api:
        try:
            plan = await api.plan(Action.DRAIN_QUEUE, target, chosen)
        except Invariant as unusable:
            raise CommandFailed.because(unusable, exit_code=ExitCode.USAGE, at="--to") from unusable
        report = await act(call, api, plan, Consent(needed=True, yes=yes, dry_run=dry_run), [])
        return _told(report, plan, api.driver.url)


def _told(report: Report, plan: Plan, here: str) -> Report:
    """The answer with both ends of the move, and what is left to do."""
    if not report.data:
        return report
    paused = (plan.target.where.values(Field.QUEUE) if plan.target.where else None) or ()
    left = [] if "dry_run" in report.data else [f"ultijobs queues resume {queue}" for queue in paused]
    hints = [f"it stays paused here, until {line}" for line in left]
    ends = {"from": here, "to": whither(plan.options), "queues": paused}
    return replace(report, data={**report.data, **ends}, hints=[*report.hints, *hints])
