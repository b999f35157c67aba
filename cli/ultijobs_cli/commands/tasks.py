"""`tasks ls`, `tasks show`, `tasks preview`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from ultijobs.inspection import CatalogEntry, Leader, Slot, TaskDetail, TaskRow
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.completing import task_names
from ultijobs_cli.connect import inspector
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.jsonform import columns
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import CommandFailed, Finding, Report
from ultijobs_cli.settings import application
from ultijobs_cli.tables import Block, Cell, Column, Pairs, Paragraph, Tone, grid
from ultijobs_cli.watch import watching

__all__ = ["TaskName", "ls", "preview", "show"]

TaskName = Annotated[str, typer.Argument(metavar="NAME", help="The task's name.", autocompletion=task_names)]

_OUTCOMES: Final[dict[str, Tone]] = {"fired": "green", "caught-up": "yellow", "skipped": "dim", "missed": "red"}


async def ls(call: Invocation, watch: options.Watch = False) -> Report:
    """Lists the tasks, and what is wrong with them.

    It shows when each fires next, and when it last did. Declarations come from the catalogue that workers and
    schedulers write; with --app, from the application itself.

    $ ultijobs tasks ls
    $ ultijobs tasks ls --app shop.main:app --json
    """
    declared, findings = _declared(call)
    async with inspector(call) as api:

        async def look() -> Report:
            rows = await api.tasks(declared)
            now, leader = await api.now(), await api.leader()
            return Report(
                summary=wording.plural(len(rows), "task"),
                data={"rows": [_columns(row) for row in rows], "next": None, "leader": _leader(leader), "as_of": now},
                blocks=[_table(rows, now), *_leading(rows, leader, now)],
                findings=findings,
                exit_code=ExitCode.FAILED if findings else ExitCode.DONE,
                rows="rows",
            )

        return await watching(call, look, watch=watch)


async def show(
    call: Invocation,
    name: TaskName,
    count: Annotated[
        int, typer.Option("--count", metavar="N", min=1, max=1_000, help="How many upcoming occurrences to show.")
    ] = 5,
) -> Report:
    """Shows one task: its declaration and its slots.

    It shows the upcoming slots, and what became of the latest ones.

    $ ultijobs tasks show nightly
    $ ultijobs tasks show nightly --count 10 --json
    """
    declared, findings = _declared(call)
    async with inspector(call) as api:
        detail = await api.task(name, upcoming=count, declared=declared)
        now = await api.now()
    data = {
        **_columns(detail.row),
        "upcoming": [{"at": at.isoformat(), "in_ms": at - now} for at in detail.upcoming],
        "slots": [columns(slot) for slot in detail.slots],
        "leader": _leader(detail.leader),
        "as_of": now,
    }
    return Report(
        summary=f"{name} fires next at {_local(detail.row.next)}",
        data=data,
        blocks=_blocks(detail, now),
        findings=findings,
        exit_code=ExitCode.FAILED if findings else ExitCode.DONE,
    )


async def preview(
    call: Invocation,
    name: TaskName,
    around: Annotated[
        str | None, typer.Option("--around", metavar="DATE", help="The day, in the task's zone: 2026-10-25.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", metavar="N", min=1, max=10_000, help="Show at most this many.")
    ] = 100,
) -> Report:
    """Shows when a task fires on a given day.

    It also shows the occurrence before that day and the one after. Use it to see what a clock change does to the
    task.

    $ ultijobs tasks preview nightly
    $ ultijobs tasks preview nightly --around 2026-10-25 --json
    """
    day = _day(around)
    declared, findings = _declared(call)
    async with inspector(call) as api:
        rows = await api.preview(name, day or await api.now(), limit=count, declared=declared)
    table = grid(
        rows,
        [
            Column("LOCAL", lambda row: Cell(_local(row.at), "bold")),
            Column("UTC", lambda row: wording.moment(row.at)),
            Column("CLOCKS", lambda row: _shift(row.shift)),
        ],
        empty="no occurrence around that day",
    )
    return Report(
        summary=wording.plural(len(rows), "occurrence"),
        data={
            "name": name,
            "rows": [{"at": row.at.isoformat(), "utc": row.at, "shift_ms": row.shift} for row in rows],
            "next": None,
        },
        blocks=[table],
        findings=findings,
        exit_code=ExitCode.FAILED if findings else ExitCode.DONE,
        rows="rows",
    )


def _declared(call: Invocation) -> tuple[Sequence[CatalogEntry], Sequence[Finding]]:
    """The application's own declarations where one is named; one that cannot be imported is a finding."""
    if not application(call.flags):
        return (), ()
    from ultijobs._definitions.catalogue import catalogue  # noqa: PLC0415 - only where an application is loaded

    try:
        app = load_app(call)
    except CommandFailed as failed:
        return (), failed.report.findings
    entries = catalogue(
        app.registry, redact=app.redact, retention=app.retention, limits=app.limits, code_version=None, environment=None
    )
    return entries, ()


def _columns(row: TaskRow) -> dict[str, object]:
    return {**columns(row), "next": None if row.next is None else row.next.isoformat()}


def _leader(leader: Leader | None) -> dict[str, object] | None:
    if leader is None:
        return None
    return {
        "holder": leader.holder,
        "term": leader.term,
        "lease_until": leader.lease_until,
        "leads": leader.lease_until > leader.now,
    }


def _table(rows: Sequence[TaskRow], now: datetime) -> Block:
    return grid(
        rows,
        [
            Column("TASK", lambda row: Cell(row.name, "bold"), wide=True),
            Column("CRON", lambda row: row.cron),
            Column("MEANING", lambda row: wording.text(row.meaning), rank=3, wide=True),
            Column("ZONE", lambda row: row.tz, rank=2),
            Column("NEXT", lambda row: wording.NONE if row.next is None else wording.until(row.next, now), right=True),
            Column("LAST", lambda row: wording.since(row.last_fired, now), right=True),
            Column("LATE", lambda row: Cell(wording.since(row.late_since, now), "red" if row.late_since else "")),
            Column("CATCH-UP", lambda row: row.catch_up, rank=1),
            Column("ERROR", lambda row: Cell(wording.text(row.last_error), "red" if row.last_error else ""), wide=True),
        ],
        empty="no task is declared",
    )


def _leading(rows: Sequence[TaskRow], leader: Leader | None, now: datetime) -> list[Paragraph]:
    if not rows or (leader is not None and leader.lease_until > now):
        return []
    last = "" if leader is None else f"; {leader.holder} did until {wording.moment(leader.lease_until)}"
    return [Paragraph(f"no scheduler leads{last}: ultijobs scheduler --app MODULE:NAME", "red")]


def _blocks(detail: TaskDetail, now: datetime) -> list[Block]:
    row = detail.row
    pairs: list[tuple[str, Cell]] = [
        ("cron", Cell(f"{row.cron} ({row.tz})")),
        ("meaning", Cell(wording.text(row.meaning))),
        ("catch up", Cell(f"{row.catch_up}, {row.max_catch_up} at the most")),
        ("next", Cell(_local(row.next))),
        ("last", Cell(_utc(row.last_fired))),
        (
            "decided",
            Cell(_utc(row.watermark) if row.watermark else "not armed: no scheduler has seen it"),
        ),
    ]
    if row.late_since:
        pairs.append(("late", Cell(f"since {_utc(row.late_since)}", "red")))
    if row.last_error:
        pairs.append(("error", Cell(row.last_error, "red")))
    upcoming = grid(
        detail.upcoming,
        [
            Column("UPCOMING", lambda at: at.isoformat(sep=" ")),
            Column("IN", lambda at: wording.duration(at - now), right=True),
        ],
        empty="nothing to come",
    )
    return [Pairs(tuple(pairs), title=row.name), upcoming, _ledger(detail.slots, now)]


def _ledger(slots: Sequence[Slot], now: datetime) -> Block:
    return grid(
        slots,
        [
            Column("SLOT (UTC)", lambda slot: wording.moment(slot.occurrence)),
            Column("OUTCOME", lambda slot: Cell(slot.outcome, _OUTCOMES.get(slot.outcome, ""))),
            Column("SLOTS", lambda slot: f"{slot.slots:,}", rank=2, right=True),
            Column("JOBS", lambda slot: str(len(slot.job_ids)), right=True),
            Column("DECIDED", lambda slot: f"{wording.since(slot.decided_at, now)} ago", rank=1),
            Column("REASON", lambda slot: wording.text(slot.reason), wide=True),
        ],
        empty="no slot was decided yet",
    )


def _utc(at: datetime | None) -> str:
    """Said with its zone: other times on the page are the task's own."""
    return wording.NONE if at is None else f"{wording.moment(at)} UTC"


def _local(at: datetime | None) -> str:
    return wording.NONE if at is None else at.isoformat(sep=" ")


def _shift(shift: timedelta) -> Cell:
    if not shift:
        return Cell("")
    way = "forward" if shift > timedelta(0) else "back"
    return Cell(f"{way} {wording.duration(abs(shift))}", "yellow")


def _day(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise options.bad("--around", f"{text!r:.100} is not a date", "write --around 2026-10-25") from None
