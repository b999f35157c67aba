"""Worker processes: whether each makes progress, what it holds, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs.inspection import Count, LeaseRow, WorkerRow
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line

__all__ = ["WORKER_SORTS", "held_by", "instance_of", "lag_tone", "worker_table", "workers_summary"]

WORKER_SORTS: Final = ("trouble", "name", "busy", "beat")
SLOW_LAG_MS: Final = 1_000
"""From here on a loop that turns late is shown as trouble."""
_FAILED: Final = ("retried", "dead")
_TONES: Final = {
    "healthy": Tone.GOOD,
    "idle": Tone.GOOD,
    "wedged": Tone.BAD,
    "draining": Tone.WARN,
    "drained": Tone.WARN,
    "gone": Tone.MUTED,
}
_TROUBLE: Final = {"wedged": 0, "draining": 2, "healthy": 3, "idle": 4, "drained": 5, "gone": 6}


def worker_table(frame: Frame, history: History, look: Look, *, sort: str = "trouble", find: str = "") -> Table:
    """One row per process. A gone one that still holds jobs is the first to look at."""
    columns = (
        Column("WORKER", 10, 24, sort="name"),
        Column("STATE", 8, 14, sort="trouble"),
        Column("BUSY", 6, 9, align="right", sort="busy"),
        Column("CLAIMED", 7, align="right"),
        Column("SETTLED", 7, align="right", drop=1),
        Column("BEAT", 6, align="right", sort="beat"),
        Column("LAG", 6, align="right", drop=2),
        Column("DONE/m", 6, align="right", drop=6),
        Column("FAIL/m", 6, align="right", drop=7),
        Column("CODE", 4, 9, drop=5),
        Column("RSS", 5, align="right", drop=8),
        Column("UP", 5, align="right", drop=4),
        Column("QUEUES", 6, grow=True, drop=3),
    )
    workers = frame.workers
    if workers is None:
        return unread(columns, frame.failures.get("workers"))
    held = held_by(frame.leases or ())
    shown = [worker for worker in workers if holds(find, _fields(worker))]
    if (said := nothing_found(columns, find, workers if not shown else (), "worker")) is not None:
        return said
    shown.sort(key=_order(sort, held))
    return Table(columns, tuple(_row(w, held.get(w.worker_id, ()), history, look) for w in shown), _none(frame))


def _fields(worker: WorkerRow) -> dict[str, str | None]:
    return {
        "worker": worker.worker_id,
        "state": worker.state,
        "host": worker.host,
        "code": worker.code_version,
        "version": worker.version,
        "environment": worker.environment,
        "queue": " ".join(worker.queues),
        "job": " ".join(worker.names),
    }


def _order(sort: str, held: Mapping[str, Sequence[LeaseRow]]) -> Callable[[WorkerRow], tuple[float | str, str, str]]:
    def key(worker: WorkerRow) -> float | str:
        if sort == "busy":
            return -worker.running
        if sort == "beat":
            return worker.heartbeat_at.timestamp()
        if sort == "name":
            return worker.worker_id
        if worker.ended:
            return 1 if worker.worker_id in held else _TROUBLE["gone"]
        return _TROUBLE.get(worker.state, 3)

    return lambda worker: (key(worker), worker.worker_id, str(worker.instance))


def _row(worker: WorkerRow, held: Sequence[LeaseRow], history: History, look: Look) -> Row:
    live = not worker.ended
    busy = worker.running if live else len(held)
    return Row(
        str(worker.instance),
        (
            cell(worker.worker_id, Tone.STRONG if live else None),
            _state(worker, held, look),
            cell(f"{busy}/{worker.concurrency}", Tone.WARN if live and not worker.free_slots else None),
            cell(look.since(worker.claimed_at)),
            cell(look.since(worker.settled_at)),
            cell(look.since(worker.heartbeat_at), None if live else Tone.BAD if held else None),
            cell(fmt.took(worker.loop_lag_ms) if live else fmt.NEVER, lag_tone(worker) if live else None),
            cell(_rate(history.worker_per_minute(worker.instance, ("done",)))),
            _failing(history.worker_per_minute(worker.instance, _FAILED)),
            cell(worker.code_version or fmt.NEVER, Tone.MUTED),
            cell(fmt.size(worker.rss_bytes) if live else fmt.NEVER, Tone.MUTED),
            cell(_up(worker, look.now), Tone.MUTED),
            cell(", ".join(worker.queues) or fmt.NEVER, Tone.MUTED),
        ),
        Tone.PLAIN if live or held else Tone.MUTED,
    )


def _state(worker: WorkerRow, held: Sequence[LeaseRow], look: Look) -> Cell:
    if worker.stopped_at is not None and not held:
        return cell(worker.state if look.absolute else f"{worker.state} {look.since(worker.stopped_at)}", Tone.MUTED)
    if worker.ended:
        since = "" if look.absolute else f" {look.since(worker.heartbeat_at)}"
        return cell(f"{'GONE' if held else 'gone'}{since}", Tone.BAD if held else Tone.MUTED)
    said = worker.state if worker.state in {"healthy", "idle"} else worker.state.upper()
    return cell(said, _TONES.get(worker.state, Tone.WARN))


def lag_tone(worker: WorkerRow) -> Tone:
    """How a loop that turns late is told."""
    return Tone.BAD if worker.loop_lag_ms >= SLOW_LAG_MS else Tone.MUTED


def _rate(rate: float | None) -> str:
    return fmt.NEVER if rate is None else f"{rate:,.0f}"


def _failing(rate: float | None) -> Cell:
    return cell(_rate(rate), Tone.WARN if rate and round(rate) else Tone.MUTED)


def _up(worker: WorkerRow, now: datetime) -> str:
    return fmt.age_between(worker.started_at, worker.heartbeat_at if worker.ended else now)


def _none(frame: Frame) -> tuple[Line, ...]:
    ready = frame.overview.stats.totals.get("ready", Count(0)) if frame.overview else Count(0)
    said = line(Span("!! ", Tone.BAD), "No worker runs, and none has for a day. ", f"{fmt.count(ready)} jobs are due.")
    if not ready.value:
        said = line("No worker runs, and none has for a day.")
    return (said, line(Span("ultijobs worker --app MODULE:NAME", Tone.KEY), " starts one."))


def held_by(leases: Sequence[LeaseRow]) -> dict[str, list[LeaseRow]]:
    """The jobs that each worker holds, the longest running first."""
    held: dict[str, list[LeaseRow]] = {}
    for lease in sorted(leases, key=lambda each: each.started_at or each.lease_until):
        held.setdefault(lease.worker_id or "", []).append(lease)
    return held


def workers_summary(frame: Frame | None) -> list[str | Span]:
    """`8 workers · 1 wedged · 198/240 slots busy · code 9f31c0a x7, 88aa120 x1`."""
    if frame is None or frame.workers is None:
        return []
    live = [w for w in frame.workers if not w.ended]
    parts: list[str | Span] = [f"{len(live)} worker{'' if len(live) == 1 else 's'}"]
    counted = Counter(w.state for w in frame.workers if w.stopped_at is None)
    for state, tone in (("wedged", Tone.BAD), ("draining", Tone.WARN), ("drained", Tone.WARN), ("gone", Tone.MUTED)):
        if counted[state]:
            parts += [" · ", Span(f"{counted[state]} {state}", tone)]
    parts.append(f" · {sum(w.running for w in live)}/{sum(w.concurrency for w in live)} slots busy")
    return parts


def instance_of(workers: Sequence[WorkerRow], name: str) -> UUID | None:
    """The process that goes by `name`: the live one, else the last that did."""
    named = [w for w in workers if w.worker_id == name]
    named.sort(key=lambda w: (not w.ended, w.heartbeat_at))
    return named[-1].instance if named else None
