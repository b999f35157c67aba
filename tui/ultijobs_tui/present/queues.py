"""Every queue with its state and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ultijobs.inspection import QueueRow
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.present.incident import SLOW_READY_MS, queue_facts
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["QUEUE_SORTS", "queue_panel", "queue_table"]

QUEUE_SORTS: Final = ("oldest", "ready", "dead", "name")
_SPARK: Final = 12
_SPARK_LEAST: Final = 3

_KEYS: Final[dict[str, Callable[[QueueRow], tuple[object, ...]]]] = {
    "oldest": lambda q: (-(q.oldest_ready_ms or -1), q.queue),
    "ready": lambda q: (-q.ready.value, q.queue),
    "dead": lambda q: (-q.dead.value, q.queue),
    "name": lambda q: (q.queue,),
}


def queue_table(frame: Frame, history: History, look: Look, *, sort: str = "oldest", find: str = "") -> Table:
    """One row per queue. A count that was cut short says so; a rate is left out until there is enough to tell it."""
    columns = (
        Column("QUEUE", 8, 24, sort="name"),
        Column("STATE", 9, 13),
        Column("READY", 7, align="right", sort="ready"),
        Column("NET/m", 7, align="right", drop=3),
        Column("ETA", 7, align="right", drop=2),
        Column("OLDEST", 7, align="right", sort="oldest"),
        Column("RUN/CAP", 8, align="right"),
        Column("DELAYED", 8, align="right", drop=6),
        Column("SUSP", 7, align="right", drop=7),
        Column("DEAD", 7, align="right", sort="dead"),
        Column("WKR", 3, align="right", drop=4),
        Column("READY 15m", _SPARK, drop=8),
        Column("", 0, grow=True, drop=9),
    )
    if frame.queues is None:
        why = frame.failures.get("queues")
        return Table(columns, (), (line(Span(f"?? {why}" if why else "reading…", Tone.WARN if why else Tone.MUTED)),))
    rows = sorted((q for q in frame.queues if find.casefold() in q.queue.casefold()), key=_KEYS[sort])
    if find and not rows:
        return Table(
            columns, (), (line(f"No queue is called like {find!r}.  ", Span("esc", Tone.KEY), " leaves this filter"),)
        )
    empty = line("No queues yet. A queue appears when a job is enqueued or a worker subscribes.")
    return Table(columns, tuple(_row(queue, history, look) for queue in rows), (empty,))


def _row(queue: QueueRow, history: History, look: Look) -> Row:
    net = history.ready_per_minute(queue.queue)
    late = (queue.oldest_ready_ms or 0) > SLOW_READY_MS
    number = fmt.count if look.wide else fmt.short_count
    return Row(
        queue.queue,
        (
            cell(queue.queue, Tone.STRONG),
            _state(queue, look),
            cell(number(queue.ready)),
            cell(fmt.NEVER if net is None else f"{net:+,.0f}" if round(net) else "0", Tone.MUTED),
            _eta(queue, net),
            cell(fmt.exact_age(queue.oldest_ready_ms), Tone.BAD if late else None),
            cell(fmt.slots(queue.running, queue.capacity) if queue.capacity else f"{queue.running}/–"),
            cell(fmt.short_count(queue.delayed), Tone.MUTED),
            cell(fmt.short_count(queue.suspended), Tone.MUTED),
            cell(number(queue.dead), Tone.BAD if queue.dead.value else Tone.MUTED),
            cell(str(queue.workers), Tone.BAD if not queue.workers and queue.ready.value else Tone.MUTED),
            cell(_spark(history.ready_values(queue.queue, _SPARK)), Tone.ACCENT),
            cell(""),
        ),
    )


def _spark(values: Sequence[int]) -> str:
    return fmt.spark(values, _SPARK) if len(values) >= _SPARK_LEAST else ""


def _state(queue: QueueRow, look: Look) -> Cell:
    if queue.state == "paused":
        return cell(f"PAUSED {look.since(queue.paused_at)}", Tone.WARN)
    if queue.state == "unserved":
        return cell("NO WORKER", Tone.BAD if queue.ready.value else Tone.MUTED)
    return cell(queue.state, Tone.GOOD)


def _eta(queue: QueueRow, net: float | None) -> Cell:
    if not queue.ready.value:
        return cell(fmt.NEVER, Tone.MUTED)
    if queue.state != "running":
        return cell("never", Tone.BAD)
    if net is None:
        return cell(fmt.NEVER, Tone.MUTED)
    if round(net) >= 0:
        return cell("growing" if round(net) else "steady", Tone.WARN)
    return cell(fmt.age(queue.ready.value / -net * 60_000))


def queue_panel(queue: QueueRow | None, look: Look) -> list[Line]:
    """The queue under the cursor, and what can be done with it."""
    if queue is None:
        return []
    keys: list[str | Span] = [Span(" press ", Tone.MUTED)]
    if queue.state == "paused":
        keys += [Span(look.key("resume"), Tone.KEY), " resume   "]
    else:
        keys += [Span(look.key("pause"), Tone.KEY), " pause   "]
    keys += [Span(look.key("open"), Tone.KEY), " jobs   ", Span(look.key("dead_of_queue"), Tone.KEY), " dead letters"]
    if queue.state == "unserved" and queue.ready.value:
        keys += [Span(f"   start one: ultijobs worker --queues {queue.queue}", Tone.WARN)]
    return [rule(queue.queue, queue.state), *queue_facts(queue, look), line(*keys)]
