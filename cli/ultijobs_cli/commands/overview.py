"""`stats`, `causes`, `leases`, `activity`: the whole queue at a glance."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

import typer

from ultijobs.inspection import ActivityRow, Cause, Count, JobState, LeaseRow
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.commands.queues import queue_table
from ultijobs_cli.connect import inspector
from ultijobs_cli.jsonform import columns
from ultijobs_cli.report import Report
from ultijobs_cli.strangers import strangers
from ultijobs_cli.tables import Cell, Column, Pairs, grid
from ultijobs_cli.watch import watching

__all__ = ["activity", "causes", "leases", "stats"]

_STOPPED: Final = "state:dead,failed"


async def stats(
    call: Invocation, queue: options.Queue = None, tenant: options.Tenant = None, watch: options.Watch = False
) -> Report:
    """Counts jobs by state and by queue. A + means at least that many, a ~ means about.

    $ ultijobs stats
    $ ultijobs stats --queue billing --json
    """
    chosen = options.filter_of(None, queue=queue, tenant=tenant)
    async with inspector(call) as api:

        async def look() -> Report:
            found = await api.stats(queue=queue, tenant=tenant)
            totals = ((state, found.totals.get(state, Count(0))) for state in JobState)
            return Report(
                summary=", ".join(f"{wording.count(n)} {state}" for state, n in found.totals.items() if n.value)
                or "no jobs",
                data=columns(found),
                blocks=[
                    Pairs(tuple((str(state), Cell(wording.count(number))) for state, number in totals)),
                    queue_table(found.queues, found.as_of),
                ],
                hints=await strangers(api, chosen, [number for number in found.totals.values() if number.value]),
                rows="queues",
            )

        return await watching(call, look, watch=watch)


async def causes(
    call: Invocation,
    where: options.WhereText = None,
    queue: options.Queue = None,
    name: options.Name = None,
    tenant: options.Tenant = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1_000, help="Show at most this many causes.")
    ] = 50,
    watch: options.Watch = False,
) -> Report:
    """Groups stopped jobs by cause.

    Once a cause is fixed, one command retries its jobs: `jobs retry --where "fp:FP"`.

    $ ultijobs causes
    $ ultijobs causes --queue billing
    """
    chosen = options.filter_of(where or [_STOPPED], queue=queue, name=name, tenant=tenant)
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.causes(chosen, limit=limit)
            now = await api.now()
            table = grid(
                rows,
                [
                    Column[Cause]("JOBS", lambda row: Cell(wording.count(row.count), "red"), right=True),
                    Column[Cause]("FP", lambda row: (wording.text(row.fingerprint))[:8]),
                    Column[Cause]("REASON", lambda row: wording.text(row.stop_reason), rank=1),
                    Column[Cause]("CODE", lambda row: wording.text(row.error_code), rank=2, wide=True),
                    Column[Cause]("STEP", lambda row: wording.text(row.step), rank=4, wide=True),
                    Column[Cause]("FIRST", lambda row: wording.since(row.first_at, now), rank=2, right=True),
                    Column[Cause]("LAST", lambda row: wording.since(row.last_at, now), right=True),
                    Column[Cause]("TENANTS", lambda row: str(row.tenants), rank=5, right=True),
                    Column[Cause]("RETRIED", _retried, rank=3, right=True),
                    Column[Cause]("MESSAGE", _message, wide=True, least=40),
                ],
                empty="nothing has stopped",
            )
            return Report(
                summary=wording.plural(len(rows), "cause"),
                data={"rows": rows, "next": None, "as_of": now},
                blocks=[table],
                hints=[f'one of them: ultijobs jobs ls --where "{_STOPPED} fp:FP"']
                if rows
                else await strangers(api, chosen, rows),
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def leases(
    call: Invocation,
    where: options.WhereText = None,
    queue: options.Queue = None,
    name: options.Name = None,
    tenant: options.Tenant = None,
    limit: options.Limit = 200,
    watch: options.Watch = False,
) -> Report:
    """Lists running jobs: who holds each, its step, until when.

    $ ultijobs leases
    $ ultijobs leases --where "worker:web-3* age:>10m"
    $ ultijobs leases --queue billing --watch
    """
    chosen = options.filter_of(where, queue=queue, name=name, tenant=tenant)
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.leases(chosen, limit=limit)
            now = await api.now()
            table = grid(
                rows,
                [
                    Column[LeaseRow]("ID", lambda row: Cell(wording.tail(row.id), "bold")),
                    Column[LeaseRow]("JOB", lambda row: row.name, wide=True),
                    Column[LeaseRow]("QUEUE", lambda row: row.queue, rank=3, wide=True),
                    Column[LeaseRow]("WORKER", lambda row: wording.text(row.worker_id), wide=True),
                    Column[LeaseRow]("STEP", lambda row: wording.text(row.running_step), rank=1, wide=True),
                    Column[LeaseRow]("ATT", lambda row: f"{row.attempt}/{row.max_attempts}", rank=2, right=True),
                    Column[LeaseRow]("RUNS", lambda row: wording.since(row.started_at, now), right=True),
                    Column[LeaseRow](
                        "LEASE",
                        lambda row: Cell("lapsed", "red") if row.expired else wording.until(row.lease_until, now),
                        right=True,
                    ),
                ],
                empty="nothing runs",
            )
            return Report(
                summary=wording.plural(len(rows), "lease"),
                data={"rows": rows, "next": None, "as_of": now},
                blocks=[table],
                hints=await strangers(api, chosen, rows),
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def activity(
    call: Invocation, limit: options.Limit = 100, after: options.After = None, watch: options.Watch = False
) -> Report:
    """Lists what operators did: who, when, why, and the result.

    $ ultijobs activity
    $ ultijobs activity --limit 10 --json
    """
    cursor = _cursor(after)
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.activity(after=cursor, limit=limit)
            now = await api.now()
            table = grid(
                rows,
                [
                    Column[ActivityRow]("AGO", lambda row: wording.since(row.at, now), right=True),
                    Column[ActivityRow]("WHO", lambda row: row.actor, wide=True),
                    Column[ActivityRow]("ACTION", lambda row: Cell(row.action, "bold")),
                    Column[ActivityRow]("TARGET", lambda row: row.target, wide=True),
                    Column[ActivityRow]("DONE", lambda row: _number(row.done), right=True),
                    Column[ActivityRow]("REFUSED", lambda row: _number(row.refused), rank=2, right=True),
                    Column[ActivityRow]("FAILED", lambda row: _number(row.failed), rank=2, right=True),
                    Column[ActivityRow]("REASON", lambda row: row.reason or "", rank=1, wide=True),
                    Column[ActivityRow]("ID", lambda row: wording.tail(row.id), rank=1),
                ],
                empty="nobody has acted yet",
            )
            following = str(rows[-1].id) if len(rows) == limit else None
            return Report(
                summary=wording.plural(len(rows), "act"),
                data={"rows": rows, "next": following, "as_of": now},
                blocks=[table],
                hints=[f"more: --after {following}"] if following else [],
                rows="rows",
            )

        return await watching(call, look, watch=watch)


def _message(row: Cause) -> str:
    """The error without its code, which has a column of its own."""
    return (row.error or "").removeprefix(f"{row.error_code}: ")


def _retried(row: Cause) -> str:
    return f"{row.retried}, died again {row.died_again}" if row.retried else wording.NONE


def _number(value: int | None) -> str:
    return wording.NONE if value is None else f"{value:,}"


def _cursor(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise options.bad("--after", f"{text!r:.100} is not a cursor", "give the `next` of the page before") from None
