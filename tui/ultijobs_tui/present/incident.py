"""The home screen: what is stuck, why, since when, who holds it, what to press."""

from __future__ import annotations

from typing import Final

from ultijobs.inspection import Count, Overview, QueueRow, StopReason, Stuck, StuckKind
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.paint import folded
from ultijobs_tui.present.causes import cause_panel, first_line, short_fingerprint
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["SLOW_READY_MS", "gauges", "incident_table", "pace", "press_of", "stuck_panel"]

SLOW_READY_MS: Final = 60_000
"""From here on the oldest ready job is shown as late."""

_SHORT: Final = {
    StuckKind.DEAD: "dead",
    StuckKind.STARVING: "starving",
    StuckKind.PAUSED: "paused",
    StuckKind.LEASE: "lease",
    StuckKind.NO_WORKER: "no worker",
    StuckKind.CRON: "cron",
    StuckKind.OUTBOX: "outbox",
    StuckKind.BACKFILL: "backfill",
    StuckKind.THROTTLED: "throttled",
    StuckKind.FAILED_DETECTOR: "unknown",
}
_PRESS: Final = {
    StuckKind.DEAD: ("canary", "canary"),
    StuckKind.STARVING: ("open", "jobs"),
    StuckKind.PAUSED: ("resume", "resume"),
    StuckKind.LEASE: ("holder", "worker"),
    StuckKind.NO_WORKER: ("open", "jobs"),
    StuckKind.CRON: ("open", "task"),
    StuckKind.OUTBOX: ("open", "outbox"),
    StuckKind.BACKFILL: ("open", "backfill"),
    StuckKind.THROTTLED: ("tenant", "tenant"),
    StuckKind.FAILED_DETECTOR: ("now", ""),
}
_DECLARES: Final = "or start a worker of the release that declares it, with its queue"
_SPARK: Final = 12
_MARKS: Final = {2: ("!!", Tone.BAD), 1: ("! ", Tone.WARN), 0: ("· ", Tone.MUTED)}


def gauges(overview: Overview | None, history: History, look: Look) -> Line:
    """The queue in numbers: what is due and how late, what runs, what waits, what is dead."""
    if overview is None:
        return line(" ", Span("reading…", Tone.MUTED))
    totals = overview.stats.totals
    late = (overview.oldest_ready_ms or 0) > SLOW_READY_MS
    gap = "   " if look.wide else "  "

    def number(state: str, label: str) -> list[str | Span]:
        value = totals.get(state, Count(0))
        text = fmt.count(value) if look.wide else fmt.short_count(value)
        return [
            Span(f"{label} ", Tone.MUTED),
            Span(text, Tone.STRONG),
            Span(f"{history.trend(state)}{gap}", Tone.MUTED),
        ]

    parts: list[str | Span] = [" ", *number("ready", "ready"), Span("oldest ", Tone.MUTED)]
    oldest = fmt.exact_age(overview.oldest_ready_ms)
    parts.append(Span(f"{oldest}{' !!' if late else ''}{gap}", Tone.BAD if late else Tone.PLAIN))
    running = fmt.slots(overview.running, overview.capacity)
    parts += [Span("running " if look.wide else "run ", Tone.MUTED), Span(f"{running}{gap}", Tone.STRONG)]
    if look.wide:
        parts += number("suspended", "suspended") + number("delayed", "delayed")
    dead = totals.get("dead", Count(0))
    parts += [Span("dead ", Tone.MUTED), Span(fmt.count(dead), Tone.BAD if dead.value else Tone.STRONG)]
    parts.append(Span(history.trend("dead"), Tone.MUTED))
    outbox = overview.stats.outbox
    if look.wide and outbox is not None and (outbox.staged.value or outbox.set_aside.value):
        tone = Tone.BAD if outbox.set_aside.value else Tone.STRONG
        parts += [Span(f"{gap}outbox ", Tone.MUTED), Span(fmt.short_count(outbox.staged), tone)]
    if look.wide:
        parts += [Span(f"{gap}workers ", Tone.MUTED), Span(f"{overview.workers}", Tone.STRONG)]
    return line(*parts)


def pace(history: History, look: Look) -> tuple[Span, ...]:
    """How many attempts end well and for good each minute, and how that went; nothing before it is known."""
    spans: list[Span] = []
    if look.wide and history.minutes() >= 1:
        bars = fmt.spark(history.values("ready", _SPARK), _SPARK)
        spans += [Span(f"{history.minutes():.0f}m: ready ", Tone.MUTED), Span(f"{bars}  ", Tone.ACCENT)]
    for outcome, tone in (("done", Tone.GOOD), ("dead", Tone.BAD)):
        rate = history.settled_per_minute(outcome)
        if rate is None:
            return ()
        bars = f" {fmt.spark(history.settled(outcome, _SPARK), _SPARK)}" if look.wide else ""
        spans += [Span(f"{outcome}/min", Tone.MUTED), Span(bars, tone), Span(f" {rate:,.0f}  ", Tone.STRONG)]
    return tuple(spans)


def incident_table(frame: Frame, look: Look, *, fresh: frozenset[str] = frozenset(), find: str = "") -> Table:
    """One row per stuck thing: the worst first, then the oldest; a row keeps its place while its severity holds.

    `fresh` rows are marked `+`; `find` keeps the rows that hold each of its words.
    """
    wide = look.wide
    columns = (
        Column("", 3),
        Column("STUCK", 7, 9, align="right"),
        Column("WHAT", 13 if wide else 9, 16),
        Column("WHY", 40, grow=True),
        Column("SINCE", 6, align="right"),
        Column("LAST", 6, align="right", drop=2),
        Column("HELD BY", 10, 18, drop=3),
        Column("PRESS", 10 if wide else 6, 15),
    )
    overview = frame.overview
    if overview is None:
        why = frame.failures.get("overview")
        lines = (line(Span(f"?? {why}", Tone.WARN)),) if why else (line(Span("reading…", Tone.MUTED)),)
        return Table(columns, (), lines)
    stuck = [s for s in sorted(overview.stuck, key=_order) if _holds(s, find)]
    if not stuck and find:
        return Table(
            columns,
            (),
            (line(f"Nothing that is stuck says {find!r}.  ", Span("esc", Tone.KEY), " leaves this filter"),),
        )
    return Table(columns, tuple(_row(s, look, fresh) for s in stuck), _nothing(overview))


def _order(stuck: Stuck) -> tuple[int, float, str]:
    return (-stuck.severity, stuck.since.timestamp() if stuck.since else float("inf"), stuck.key)


def _holds(stuck: Stuck, find: str) -> bool:
    text = f"{stuck.kind} {stuck.why} {stuck.queue or ''} {stuck.held_by or ''}".casefold()
    return all(word in text for word in find.casefold().split())


def _row(stuck: Stuck, look: Look, fresh: frozenset[str]) -> Row:
    mark, tone = ("??", Tone.WARN) if stuck.kind is StuckKind.FAILED_DETECTOR else _MARKS[stuck.severity]
    new = "+" if stuck.key in fresh else " "
    key, verb = press_of(stuck, look)
    count = "?" if stuck.kind is StuckKind.FAILED_DETECTOR else fmt.count(stuck.count)
    cells: tuple[Cell, ...] = (
        cell(f"{mark}{new}", tone),
        cell(count, Tone.STRONG),
        cell(str(stuck.kind) if look.wide else _SHORT[stuck.kind], tone),
        cell(_why(stuck)),
        cell(look.since(stuck.since)),
        cell(look.since(stuck.last), Tone.MUTED),
        cell(stuck.held_by or fmt.NEVER, Tone.MUTED),
        cell(f"{key} {verb}" if look.wide else key, Tone.KEY),
    )
    return Row(stuck.key, cells)


def _why(stuck: Stuck) -> str:
    if stuck.cause is None:
        return stuck.why
    said = first_line(stuck.cause.error) or stuck.cause.error_code or "no error recorded"
    name = short_fingerprint(stuck.cause)
    return f"{stuck.cause.stop_reason or 'unknown'} · {said if said.startswith(name) else f'{name} {said}'}"


def press_of(stuck: Stuck, look: Look) -> tuple[str, str]:
    """The key that helps first, and its word."""
    changed = stuck.cause is not None and stuck.cause.stop_reason == StopReason.CODE_CHANGED
    # A canary would stop as they did: a step has to be chosen, in the run of each.
    action, word = ("open", "jobs") if changed else _PRESS[stuck.kind]
    return look.key(action), word


def _nothing(overview: Overview) -> tuple[Line, ...]:
    dead = overview.stats.totals.get("dead", Count(0))
    workers = "1 worker" if overview.workers == 1 else f"{overview.workers} workers"
    facts = (
        f"oldest ready {fmt.exact_age(overview.oldest_ready_ms)} · {fmt.count(dead)} dead · "
        f"{fmt.slots(overview.running, overview.capacity)} slots busy on {workers}"
    )
    said = line(Span("Nothing is stuck. ", Tone.GOOD), facts)
    if overview.workers:
        return (said,)
    return (said, line(Span("No worker is running: ", Tone.WARN), Span("ultijobs worker", Tone.KEY), " starts one."))


def stuck_panel(stuck: Stuck | None, overview: Overview | None, history: History, look: Look) -> list[Line]:
    """What there is to know about the row under the cursor before a key is pressed."""
    if stuck is None or overview is None:
        return []
    if stuck.cause is not None:
        return cause_panel(stuck.cause, history, look)
    queue = next((q for q in overview.queues if q.queue == stuck.queue), None)
    lines = [
        rule(f"{stuck.kind}{f' · {stuck.queue}' if stuck.queue else ''}", fmt.count(stuck.count)),
        line(" ", stuck.why),
    ]
    if queue is not None:
        lines += queue_facts(queue, look)
    if stuck.where:
        lines.append(line(Span(" list  ", Tone.MUTED), stuck.where))
    key, verb = press_of(stuck, look)
    if stuck.kind is StuckKind.LEASE:
        lines.append(line(" they run again as soon as any worker of the application looks"))
    press: list[str | Span] = [Span(" press ", Tone.MUTED), Span(key, Tone.KEY), f" {verb}"]
    if stuck.kind is StuckKind.NO_WORKER:
        start = f"start one: ultijobs worker --queues {stuck.queue}" if stuck.queue else _DECLARES
        press.append(Span(f"   {start}", Tone.WARN))
    elif stuck.kind is StuckKind.CRON and stuck.held_by is None:
        press.append(Span("   no scheduler leads: ultijobs scheduler --app MODULE:NAME", Tone.WARN))
    elif stuck.kind is StuckKind.LEASE and not overview.workers:
        press.append(Span("   none is running: ultijobs worker", Tone.WARN))
    lines.append(line(*press))
    return [part for each in lines for part in folded(each, look.width, most=2)]


def queue_facts(queue: QueueRow, look: Look) -> list[Line]:
    """A queue in two lines: who paused it and until when, and its numbers."""
    lines: list[Line] = []
    if queue.state == "paused":
        until = f"resumes by itself {look.until(queue.resume_at)}" if queue.resume_at else "until somebody resumes it"
        reason = f' "{queue.pause_reason}"' if queue.pause_reason else ""
        when = f"{look.since(queue.paused_at, exact=True)}{'' if look.absolute else ' ago'}"
        said = f"{when} by {queue.paused_by or '?'}{reason} · {until}"
        lines.append(line(Span(" paused ", Tone.MUTED), said))
    lines.append(
        line(
            Span(" ready ", Tone.MUTED), fmt.count(queue.ready),
            Span("  oldest ", Tone.MUTED), fmt.exact_age(queue.oldest_ready_ms),
            Span("  running ", Tone.MUTED), fmt.slots(queue.running, queue.capacity),
            Span("  delayed ", Tone.MUTED), fmt.count(queue.delayed),
            Span("  dead ", Tone.MUTED), fmt.count(queue.dead),
            Span("  workers ", Tone.MUTED), str(queue.workers),
        )
    )  # fmt: skip
    return lines
