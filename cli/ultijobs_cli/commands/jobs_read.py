"""`jobs ls`, `jobs show`, `jobs why`."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import typer

from ultijobs.errors import JobUnknown
from ultijobs.inspection import Inspector, JobPage, JobRow, JobState, Sort, WaitingOn, Where
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.commands.jobs_detail import blocks, data
from ultijobs_cli.connect import inspector
from ultijobs_cli.jsonform import columns
from ultijobs_cli.report import Report
from ultijobs_cli.strangers import strangers
from ultijobs_cli.tables import Block, Cell, Column, Pairs, Tone, grid
from ultijobs_cli.watch import watching

__all__ = ["STATE_TONES", "Ref", "filled", "ls", "show", "why"]

Ref = Annotated[str, typer.Argument(metavar="ID", help="A job's id, or its last 6 or more hex digits.")]

_PAGE: Final = 1_000
_SEARCH: Final = 10.0
"""Seconds without a find after which a search of history ends: a person waits for it."""
STATE_TONES: Final[dict[str, Tone]] = {
    JobState.RUNNING: "green",
    JobState.DEAD: "red",
    JobState.FAILED: "red",
    JobState.CANCELLED: "dim",
    JobState.DONE: "dim",
    JobState.SUSPENDED: "blue",
}


async def ls(
    call: Invocation,
    state: options.State = None,
    queue: options.Queue = None,
    name: options.Name = None,
    tenant: options.Tenant = None,
    where: options.WhereText = None,
    sort: Annotated[Sort, typer.Option("--sort", help="Which jobs come first.")] = Sort.NEWEST,
    limit: options.Limit = 100,
    after: options.After = None,
    watch: options.Watch = False,
) -> Report:
    """Lists jobs, newest first.

    Filter words: id: run: state: queue: job: tenant: reason: code: fp: key: worker: step: priority: age: err~ input.x:
    A space means AND, a comma OR, a leading - NOT.

    $ ultijobs jobs ls --state dead
    $ ultijobs jobs ls --where "state:ready queue:billing age:>5m"
    $ ultijobs jobs ls --where 'state:dead err~"timed out"' --json
    """
    chosen = options.filter_of(where, state=state, queue=queue, name=name, tenant=tenant)

    async with inspector(call) as api:

        async def look() -> Report:
            page = await api.jobs(chosen, sort=sort, after=after, limit=min(limit, _PAGE))
            # Older history is not searched for a name that nothing is known under; --after goes on all the same.
            unknown = await strangers(api, chosen, page.rows) if after is None else []
            if not unknown:
                page = await filled(api, chosen, page, sort=sort, limit=limit)
            return Report(
                summary=wording.plural(len(page.rows), "job") + (", more may follow" if page.next else ""),
                data={"rows": page.rows, "next": page.next, "as_of": page.as_of},
                blocks=[_table(page.rows, page.as_of)],
                hints=[*unknown, *_rest(page, limit)],
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def show(
    call: Invocation,
    id: Ref,
    tenant: options.Tenant = None,
    payloads: Annotated[
        bool, typer.Option("--input", help="Also show the input and the outputs of steps, redacted.")
    ] = False,
) -> Report:
    """Shows one job: its row, steps, attempts and next delays.

    $ ultijobs jobs show 1f3a9c20
    $ ultijobs jobs show 1f3a9c20 --input --json
    """
    async with inspector(call) as api:
        found = await api.job(await _find(api, id, tenant), tenant=tenant, with_input=payloads)
        now = await api.now()
    return Report(
        summary=f"{found.row.name} {found.row.id} is {found.row.state}",
        data=data(found, payloads=payloads),
        blocks=blocks(found, now, payloads=payloads),
    )


async def why(call: Invocation, id: Ref, tenant: options.Tenant = None) -> Report:
    """Explains why a job is not running, and what would free it.

    $ ultijobs jobs why 1f3a9c20
    """
    async with inspector(call) as api:
        answer = await api.why(await _find(api, id, tenant), tenant=tenant)
        now = await api.now()
    on = "nothing" if answer.waiting_on is None else str(answer.waiting_on)
    pairs = (
        ("job", Cell(str(answer.id))),
        ("state", Cell(answer.state, STATE_TONES.get(answer.state, ""))),
        ("waiting on", Cell(on, "yellow" if answer.waiting_on else "")),
        ("since", Cell(f"{wording.since(answer.since, now)} ({wording.moment(answer.since)} UTC)")),
        ("holder", Cell(wording.text(answer.holder))),
        ("frees", Cell(answer.frees)),
    )
    return Report(
        summary=f"{answer.id} is {answer.state}, waiting on {on}: {answer.frees}",
        data=columns(answer),
        blocks=[Pairs(pairs)],
    )


async def _find(api: Inspector, ref: str, tenant: str | None) -> UUID:
    try:
        return await api.find(ref, tenant=tenant)
    except JobUnknown as error:
        error.meta["at"] = ref
        raise


async def filled(
    api: Inspector,
    where: Where,
    page: JobPage,
    *,
    sort: Sort,
    limit: int,
    monotonic: Callable[[], float] = time.monotonic,
) -> JobPage:
    """Up to `limit` rows from `page` on, read in the pages that inspection gives.

    Fewer when no row was found for `_SEARCH` seconds: what lies behind `next` has not been searched then.
    """
    rows = list(page.rows)
    found_at = monotonic()
    while page.next is not None and len(rows) < limit and monotonic() - found_at < _SEARCH:
        page = await api.jobs(where, sort=sort, after=page.next, limit=min(limit - len(rows), _PAGE))
        if page.rows:
            rows.extend(page.rows)
            found_at = monotonic()
    return JobPage(rows, page.next, page.as_of)


def _rest(page: JobPage, limit: int) -> list[str]:
    if page.next is None:
        return []
    unsearched = "" if len(page.rows) >= limit else "older history was not searched, it would take long; "
    return [f"{unsearched}more: --after {page.next}"]


def _table(rows: list[JobRow], now: datetime) -> Block:
    tenants = any(row.tenant_id for row in rows)
    shown: list[Column[JobRow]] = [
        Column("ID", lambda row: Cell(wording.tail(row.id), "bold")),
        Column("JOB", lambda row: row.name, wide=True),
        Column("QUEUE", lambda row: row.queue, rank=3, wide=True),
        Column("STATE", lambda row: Cell(row.state, STATE_TONES.get(row.state, ""))),
        Column("ATT", wording.attempts, rank=2, right=True),
        Column("AGE", lambda row: _age(row, now), right=True),
        *([Column[JobRow]("TENANT", lambda row: wording.text(row.tenant_id), rank=4, wide=True)] if tenants else []),
        Column("NOTE", _note, rank=1, wide=True, least=32),
    ]
    return grid(rows, shown, empty="no jobs match")


def _age(row: JobRow, now: datetime) -> str:
    """Since due, since the start, since the stop; or when it becomes due."""
    if row.state == JobState.RUNNING:
        return wording.since(row.started_at, now)
    if row.finished_at is not None:
        return wording.since(row.finished_at, now)
    return wording.until(row.run_at, now) if row.run_at > now else wording.since(row.due_at, now)


def _note(row: JobRow) -> str | Cell:
    """The one thing to know about the row: what it waits for, who has it, what stopped it."""
    if row.state in {JobState.DEAD, JobState.FAILED}:
        return Cell(f"{wording.text(row.stop_reason)}: {wording.failure(row.error_code, row.last_error)}", "red")
    if row.state == JobState.CANCELLED:
        return row.cancel_reason or ""
    if row.state == JobState.RUNNING:
        step = f" in {row.running_step}" if row.running_step else ""
        return f"{wording.text(row.worker_id)}{step}"
    if row.waiting_on is not None:
        wanted = row.waiting_on in {WaitingOn.NO_WORKER, WaitingOn.PAUSED}
        return Cell(f"waits: {row.waiting_on}", "yellow" if wanted else "")
    return row.last_error or ""
