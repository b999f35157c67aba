"""Jobs in flight: who holds each, for how long yet, in which step, and which lease has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ultijobs.inspection import Count, LeaseRow, WorkerRow
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.present.jobs import progress_words
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["LEASE_SORTS", "holder_of", "lease_panel", "lease_table", "leases_summary", "step_words"]

LEASE_SORTS: Final = ("lease left", "running", "worker", "job")
_BAR: Final = 9
_LEAST_LEASE_MS: Final = 1_000
_SHOWN: Final = 200
"""Inspection answers so many at the most, the lease that ends first in front."""


def lease_table(frame: Frame, look: Look, *, sort: str = LEASE_SORTS[0], find: str = "") -> Table:
    """One row per claim; the one whose lease ends first leads unless told otherwise."""
    columns = (
        Column("ID", 9),
        Column("JOB", 10, 22, sort="job"),
        Column("STEP", 6, 16, drop=2),
        Column("WORKER", 8, 18, sort="worker"),
        Column("RUNNING", 7, align="right", sort="running"),
        Column("BEAT", 6, align="right", drop=5),
        Column("LEASE LEFT", 14 if look.wide else 11, sort="lease left"),
        Column("ATT", 5, align="right", drop=4),
        Column("TENANT", 6, 10, drop=6),
        Column("NOTE", 12, grow=True),
    )
    leases = frame.leases
    if leases is None:
        return unread(columns, frame.failures.get("leases"))
    shown = [lease for lease in leases if holds(find, _fields(lease))]
    if (said := nothing_found(columns, find, leases if not shown else (), "job in flight")) is not None:
        return said
    shown.sort(key=_ORDERS[sort])
    whole = max([_LEAST_LEASE_MS, *(fmt.ms_between(look.now, lease.lease_until) for lease in leases)])
    workers = {w.worker_id: w for w in sorted(frame.workers or (), key=lambda w: w.heartbeat_at)}
    rows = tuple(_row(lease, workers.get(lease.worker_id or ""), look, whole) for lease in shown)
    return Table(columns, rows, _none(frame, look))


_ORDERS: Final[Mapping[str, Callable[[LeaseRow], tuple[object, ...]]]] = {
    "lease left": lambda lease: (lease.lease_until, lease.id),
    "running": lambda lease: (lease.started_at or lease.lease_until, lease.id),
    "worker": lambda lease: (lease.worker_id or "", lease.lease_until, lease.id),
    "job": lambda lease: (lease.name, lease.started_at or lease.lease_until, lease.id),
}


def _fields(lease: LeaseRow) -> dict[str, str | None]:
    return {
        "id": lease.id.hex,
        "job": lease.name,
        "queue": lease.queue,
        "tenant": lease.tenant_id,
        "worker": lease.worker_id,
        "step": lease.running_step,
    }


def _row(lease: LeaseRow, worker: WorkerRow | None, look: Look, whole: float) -> Row:
    note = _note(lease, worker)
    return Row(
        str(lease.id),
        (
            cell(fmt.short_id(lease.id), Tone.MUTED),
            cell(lease.name, Tone.STRONG),
            cell(step_words(lease, worker, short=not look.wide)),
            cell(lease.worker_id or fmt.NEVER, Tone.BAD if worker is not None and worker.ended else None),
            cell(look.since(lease.started_at, exact=True)),
            cell(look.since(worker.heartbeat_at) if worker is not None else fmt.NEVER, Tone.MUTED),
            _left(lease, look, whole),
            cell(f"{lease.attempt}/{lease.max_attempts}", Tone.WARN if lease.attempt > 1 else Tone.MUTED),
            cell(lease.tenant_id or fmt.NEVER, Tone.MUTED),
            note,
        ),
    )


def step_words(lease: LeaseRow, worker: WorkerRow | None, *, short: bool = False) -> str:
    """The step that it is in. A worker tells it with its renewals, so that of a new claim it is not known."""
    if lease.running_step is not None:
        return lease.running_step
    if worker is None or lease.started_at is None:
        return fmt.NEVER
    renewed = fmt.ms_between(lease.started_at, lease.lease_until) > worker.lease_ms
    if renewed:
        return fmt.NEVER
    return "not yet" if short else "not told yet"


def _left(lease: LeaseRow, look: Look, whole: float) -> Cell:
    left = fmt.ms_between(look.now, lease.lease_until)
    if lease.expired or left <= 0:
        return cell(f"{'expired' if look.wide else 'ended'} {fmt.age(-left)}", Tone.BAD)
    if look.absolute:
        return cell(fmt.clock(lease.lease_until, now=look.now))
    bar = "▇" * max(1, round(left / whole * _BAR)) if look.wide else ""
    return cell(f"{fmt.age(left):<5}{bar}", Tone.GOOD)


def _note(lease: LeaseRow, worker: WorkerRow | None) -> Cell:
    if worker is not None and worker.ended:
        return cell("worker gone", Tone.BAD)
    if lease.expired:
        return cell("lease ended, nobody took it over", Tone.BAD)
    if worker is not None and worker.state in {"wedged", "draining"}:
        return cell(f"worker {worker.state}", Tone.WARN)
    return cell(progress_words(lease.progress) or fmt.NEVER, Tone.MUTED)


def _none(frame: Frame, look: Look) -> tuple[Line, ...]:
    ready = frame.overview.stats.totals.get("ready", Count(0)) if frame.overview else Count(0)
    if not ready.value:
        return (line("Nothing is running, and nothing is due."),)
    return (
        line(
            "Nothing is running. ",
            Span(fmt.count(ready), Tone.STRONG),
            " due: see why on ",
            Span(look.key("tab.incident"), Tone.KEY),
        ),
    )


def leases_summary(frame: Frame | None) -> list[str | Span]:
    """`198 running · 3 expired · 2 on a worker that is gone`."""
    if frame is None or frame.leases is None:
        return []
    gone = {w.worker_id for w in frame.workers or () if w.ended}
    gone -= {w.worker_id for w in frame.workers or () if not w.ended}
    parts: list[str | Span] = [f"{len(frame.leases)} running"]
    if len(frame.leases) >= _SHOWN:
        parts = [f"{_SHOWN} of {frame.overview.running if frame.overview else _SHOWN:,} running, the next to end first"]
    if late := sum(lease.expired for lease in frame.leases):
        parts += [" · ", Span(f"{late} expired", Tone.BAD)]
    if lost := sum(lease.worker_id in gone for lease in frame.leases):
        parts += [" · ", Span(f"{lost} on a worker that is gone", Tone.BAD)]
    return parts


def holder_of(lease: LeaseRow, frame: Frame) -> WorkerRow | None:
    """The process that holds it, as far as it is known."""
    named = [w for w in frame.workers or () if w.worker_id == lease.worker_id]
    return max(named, key=lambda w: w.heartbeat_at, default=None)


def lease_panel(lease: LeaseRow | None, frame: Frame | None, look: Look) -> list[Line]:
    """The claim under the cursor: what it does, who holds it, and what happens when the lease ends."""
    if lease is None or frame is None:
        return []
    worker = holder_of(lease, frame)
    tenant = f" · tenant {lease.tenant_id}" if lease.tenant_id else ""
    return [
        rule(f"{lease.name} {fmt.short_id(lease.id)}", f"{lease.queue}{tenant}"),
        line(
            Span(" started ", Tone.MUTED), fmt.clock(lease.started_at, now=look.now),
            Span("   attempt ", Tone.MUTED), f"{lease.attempt} of {lease.max_attempts}",
            Span("   claim ", Tone.MUTED), f"{lease.lease_no}",
            Span("   step ", Tone.MUTED), step_words(lease, worker),
            Span("   progress ", Tone.MUTED), progress_words(lease.progress) or fmt.NEVER,
        ),
        line(Span(" holder ", Tone.MUTED), *_holder(lease, worker, look)),
        line(Span(" lease ", Tone.MUTED), *_fate(lease, look)),
        line(
            Span(" press ", Tone.MUTED), Span(look.key("open"), Tone.KEY), " its run   ",
            Span(look.key("holder"), Tone.KEY), " worker   ",
            Span(look.key("cancel"), Tone.KEY), " cancel: a body may go on until its next step write",
        ),
    ]  # fmt: skip


def _holder(lease: LeaseRow, worker: WorkerRow | None, look: Look) -> list[str | Span]:
    if lease.worker_id is None:
        return ["nobody"]
    if worker is None:
        return [lease.worker_id, Span("   no heartbeat of it is kept", Tone.WARN)]
    tone = Tone.BAD if worker.ended or worker.state == "wedged" else Tone.PLAIN
    ago = "" if look.absolute else " ago"
    return [
        f"{lease.worker_id} on {worker.host} pid {worker.pid} · ",
        # The beat that said it was idle is older than this lease.
        Span("healthy" if worker.state == "idle" else worker.state, tone),
        f" · beat {look.since(worker.heartbeat_at)}{ago}",
    ]


def _fate(lease: LeaseRow, look: Look) -> list[str | Span]:
    left = fmt.ms_between(look.now, lease.lease_until)
    if lease.expired or left <= 0:
        last = "this was the last attempt: it will be dead" if lease.attempt >= lease.max_attempts else "runs again"
        return [
            Span(f"ended {fmt.age(-left)} ago", Tone.BAD),
            f"   {last} as soon as a worker's reaper sees it",
        ]
    return [
        f"until {fmt.clock(lease.lease_until, now=look.now)}",
        Span("   renewed while its worker lives", Tone.MUTED),
    ]
