"""`events ls`, `events publish`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from ultijobs.inspection import EventRow
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.jsonform import columns
from ultijobs_cli.jsontext import json_text
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Block, Cell, Column, Paragraph, grid
from ultijobs_cli.watch import watching

__all__ = ["ls", "publish"]

_Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1_000, help="Show at most this many rows.")]


async def ls(
    call: Invocation,
    name: Annotated[str | None, typer.Option("--name", metavar="EVENT", help="Only events of this name.")] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only this key; needs --name.")] = None,
    limit: _Limit = 100,
    after: options.After = None,
    watch: options.Watch = False,
) -> Report:
    """Lists published events, newest first; payloads are not shown.

    $ ultijobs events ls
    $ ultijobs events ls --name org.approved --key o-1 --json
    """
    if key is not None and name is None:
        raise options.bad("--key", "needs --name", f"write --name EVENT --key {key}")
    cursor = _cursor(after)
    async with inspector(call) as api:

        async def look() -> Report:
            page = await api.events(name=name, key=key, after=cursor, limit=limit)
            return Report(
                summary=wording.plural(len(page.rows), "event"),
                data={"rows": page.rows, "next": page.next, "as_of": page.as_of},
                blocks=[_table(page.rows, page.as_of)],
                hints=[f"more: --after {page.next}"] if page.next else [],
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def publish(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="EVENT", help="The event's name.")],
    payload: Annotated[
        str, typer.Option("--payload", metavar="JSON", help="The payload; @FILE reads a file, - reads stdin.")
    ] = "null",
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="The key that waiting runs match on.")] = None,
    ttl: Annotated[
        str, typer.Option("--ttl", metavar="TIME", help="How long it is kept for runs that begin to wait later.")
    ] = "7d",
    reason: options.Reason = None,
    _yes: options.NeverAsks = False,
    actor: options.Actor = None,
) -> Report:
    """Publishes an event, and wakes the runs that wait for it.

    $ ultijobs events publish org.approved --key o-1
    $ ultijobs events publish org.approved --key o-1 --payload '{"by": "ann"}' --reason "approved by phone"
    """
    value = json.loads(json_text("--payload", payload, lambda: """'{"by": "ann"}'"""))
    lifetime = options.span_of("--ttl", ttl)
    async with inspector(call, actor=actor) as api:
        published = await api.publish(name, value, key=key, ttl=lifetime, reason=reason)
    woken = f"{wording.plural(published.woken, 'run')} woken" if published.woken else "no run waits for it now"
    summary = f"{name} published: {woken}"
    return Report(summary, columns(published), [Paragraph(summary)])


def _table(rows: list[EventRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("AGO", lambda row: wording.since(row.published_at, now), right=True),
            Column("EVENT", lambda row: Cell(row.name, "bold"), wide=True),
            Column("KEY", lambda row: wording.text(row.key), wide=True),
            Column("EXPIRES", lambda row: _expires(row, now), rank=1, right=True),
            Column("BY", lambda row: wording.text(row.published_by), rank=2, wide=True),
            Column("ID", lambda row: wording.tail(row.id), rank=3),
        ],
        empty="no event was published",
    )


def _expires(row: EventRow, now: datetime) -> Cell:
    return Cell("expired", "dim") if row.expires_at <= now else Cell(wording.until(row.expires_at, now))


def _cursor(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise options.bad("--after", f"{text!r:.100} is not a cursor", "give the `next` of the page before") from None
