"""`outbox ls`, `outbox retry`: what an application staged, and what was set aside on the way into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import typer

from ultijobs.errors import JobUnknown
from ultijobs.inspection import (
    Action,
    Inspector,
    OutboxPage,
    OutboxRow,
    OutboxState,
    Plan,
    PlanOptions,
    Refusal,
    Where,
)
from ultijobs_cli import options, wording
from ultijobs_cli.acts import Unknown, refused_rows
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import outbox_inspector
from ultijobs_cli.exit_codes import ExitCode, exit_code_of
from ultijobs_cli.report import Finding, Report, told
from ultijobs_cli.tables import Block, Cell, Column, Paragraph, Tone, grid
from ultijobs_cli.watch import watching

__all__ = ["ls", "retry"]

_PAGE: Final = 1_000
_TONES: Final[dict[str, Tone]] = {"set-aside": "red", "published": "dim"}


async def ls(
    call: Invocation,
    state: Annotated[
        list[OutboxState] | None,
        typer.Option("--state", metavar="STATE", help="Only this state: staged, published, set-aside."),
    ] = None,
    tenant: options.Tenant = None,
    limit: options.Limit = 100,
    after: options.After = None,
    watch: options.Watch = False,
) -> Report:
    """Lists the rows of the outbox, newest first.

    It reads the outbox of the application, or the database given by --database-url.

    $ ultijobs outbox ls --app shop.main:app
    $ ultijobs outbox ls --database-url postgresql://localhost/shop --state set-aside --json
    """
    async with outbox_inspector(call) as api:

        async def look() -> Report:
            page = await _rows(api, state or [], tenant, after, limit)
            depth = await api.outbox_depth()
            now = await api.now()
            return Report(
                summary=f"{wording.plural(len(page.rows), 'row')}: {depth.staged} staged, {depth.set_aside} set aside",
                data={
                    "rows": page.rows,
                    "next": page.next,
                    "as_of": now,
                    "database": api.driver.url,
                    "staged": depth.staged,
                    "set_aside": depth.set_aside,
                    "oldest_staged_at": depth.oldest,
                },
                blocks=[_table(page.rows, now)],
                hints=[f"more: --after {page.next}"] if page.next else await _strangers(api, tenant, page.rows),
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def retry(
    call: Invocation,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of rows, or their last 6 or more hex digits.")],
    reason: options.Reason = None,
    tenant: options.Tenant = None,
    dry_run: options.DryRun = False,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Stages rows again that were set aside.

    Later rows of the same transaction, which were set aside with them, are staged again too.

    $ ultijobs outbox retry 1f3a9c20 --app shop.main:app --reason "queue name corrected"
    """
    async with outbox_inspector(call, actor=actor) as api:
        known, unknown = await _known(api, ids, tenant)
        chosen = PlanOptions(tenant=tenant, reason=reason)
        plan = await api.plan(Action.OUTBOX_RETRY, known, chosen) if known else None
        if dry_run:
            return _foreseen(plan, unknown)
        outcome = await api.apply(plan) if plan else None
    done = outcome.done if outcome is not None else ()
    refused: list[Refusal | Unknown] = [*unknown, *(outcome.refused if outcome is not None else ())]
    matched = len(done) + len(refused)
    summary = f"outbox retry: {len(done):,} of {wording.plural(matched, 'row')}"
    return Report(
        summary=summary,
        data={
            "matched": matched,
            "done": done,
            "refused": refused_rows(refused),
            "failed": (),
            "activity_id": None if outcome is None else outcome.activity_id,
        },
        blocks=[Paragraph(summary)],
        findings=_findings(refused),
        exit_code=_exit(refused),
    )


def _foreseen(plan: Plan | None, unknown: list[Unknown]) -> Report:
    """What would be staged again; nothing is. A plan knows what is refused among the newest rows alone."""
    refused: list[Refusal | Unknown] = [*unknown, *(plan.refused if plan else ())]
    matched = plan.matched.value if plan else 0
    summary = f"outbox retry would stage {wording.plural(matched, 'row')} again; nothing changed"
    return Report(
        summary=summary,
        data={
            "dry_run": True,
            "matched": matched,
            "done": (),
            "refused": refused_rows(refused),
            "failed": (),
            "queues": plan.queues if plan else {},
            "warnings": plan.warnings if plan else (),
            "equivalent": plan.equivalent if plan else None,
            "activity_id": None,
        },
        blocks=[Paragraph(summary), *(Paragraph(warning, "yellow") for warning in (plan.warnings if plan else ()))],
        findings=_findings(refused),
        exit_code=_exit([*unknown]),
    )


def _findings(refused: list[Refusal | Unknown]) -> list[Finding]:
    return [told(row.code, row.cause, "ultijobs outbox ls", at=str(row.id)) for row in refused]


def _exit(refused: list[Refusal | Unknown]) -> ExitCode:
    if not refused:
        return ExitCode.DONE
    unknown = all(exit_code_of(row.code) is ExitCode.NOT_FOUND for row in refused)
    return ExitCode.NOT_FOUND if unknown else ExitCode.FAILED


async def _known(api: Inspector, refs: list[str], tenant: str | None) -> tuple[list[UUID], list[Unknown]]:
    known: dict[UUID, None] = {}
    unknown: list[Unknown] = []
    for ref in refs:
        try:
            known[await api.find_staged(ref, tenant=tenant)] = None
        except JobUnknown as error:
            unknown.append(Unknown(ref, error.code, error.cause))
    return list(known), unknown


async def _rows(
    api: Inspector, states: list[OutboxState], tenant: str | None, after: str | None, limit: int
) -> OutboxPage:
    page = await api.outbox(states, tenant=tenant, after=after, limit=min(limit, _PAGE))
    rows = list(page.rows)
    while page.next is not None and len(rows) < limit:
        page = await api.outbox(states, tenant=tenant, after=page.next, limit=min(limit - len(rows), _PAGE))
        rows.extend(page.rows)
    return OutboxPage(rows, page.next)


async def _strangers(api: Inspector, tenant: str | None, rows: Sequence[OutboxRow]) -> list[str]:
    """Says of an empty list that its tenant is known nowhere: not in the outbox, and not in the queue beside it."""
    if rows or tenant is None or (await api.outbox(tenant=tenant, limit=1)).rows:
        return []
    unheard = await api.unheard(Where((), tenant))
    return [f"the outbox has no row of tenant {tenant[:100]!r}; {each}" for each in unheard]


def _table(rows: list[OutboxRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("ID", lambda row: Cell(wording.tail(row.id), "bold")),
            Column("NAME", lambda row: row.name, wide=True),
            Column("QUEUE", lambda row: row.queue or f"({row.kind})", rank=3, wide=True),
            Column("STATE", lambda row: Cell(row.state, _TONES.get(row.state, ""))),
            Column("TRIES", lambda row: str(row.attempts), rank=2, right=True),
            Column("STAGED", lambda row: wording.since(row.staged_at, now), right=True),
            Column("ERROR", lambda row: wording.text(row.last_error), rank=1, wide=True, least=32),
        ],
        empty="the outbox is empty",
    )
