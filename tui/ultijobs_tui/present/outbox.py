"""The staged outbox: what waits for a relay, what was set aside and why, and what holds all of it back."""

from __future__ import annotations

from typing import Final

from ultijobs.inspection import Health, OutboxRow, OutboxState
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.causes import first_line
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["OUTBOX_STATES", "blocker_line", "outbox_panel", "outbox_summary", "outbox_table", "outbox_text"]

OUTBOX_STATES: Final[tuple[OutboxState | None, ...]] = (
    None, OutboxState.SET_ASIDE, OutboxState.STAGED, OutboxState.PUBLISHED,
)  # fmt: skip
"""What the list is narrowed to, in the order of the key; None is everything."""
_LATE_MS: Final = 30_000
"""From here on what waits for a relay is late."""
_OPEN_MS: Final = 1_000
"""A transaction that is open for so long is worth naming."""
_TONES: Final = {OutboxState.SET_ASIDE: Tone.BAD, OutboxState.STAGED: Tone.ACCENT, OutboxState.PUBLISHED: Tone.MUTED}


def outbox_table(frame: Frame, look: Look, *, find: str = "") -> Table:
    """One row per staged job or event, the newest first."""
    columns = (
        Column("ID", 9),
        Column("JOB", 10, 24),
        Column("QUEUE", 7, 14, drop=4),
        Column("TENANT", 6, 10, drop=6),
        Column("STATE", 9),
        Column("TRIES", 5, align="right", drop=2),
        Column("STAGED", 7, align="right"),
        Column("NEXT", 7, align="right", drop=3),
        Column("BY", 7, 18, drop=5),
        Column("ERROR", 14, grow=True),
    )
    page = frame.outbox
    if page is None:
        return unread(columns, frame.failures.get("outbox"))
    shown = [row for row in page.rows if holds(find, _fields(row))]
    if (said := nothing_found(columns, find, page.rows if not shown else (), "row")) is not None:
        return said
    return Table(columns, tuple(_row(row, look) for row in shown), _empty(frame, look))


def _fields(row: OutboxRow) -> dict[str, str | None]:
    return {
        "id": row.id.hex,
        "job": row.name,
        "queue": row.queue,
        "tenant": row.tenant_id,
        "state": row.state,
        "by": row.claimed_by,
        "error": row.last_error,
    }


def _row(row: OutboxRow, look: Look) -> Row:
    said = first_line(row.last_error)
    if row.held_by is not None:
        said = f"set aside with {fmt.short_id(row.held_by)} of its transaction"
    return Row(
        str(row.id),
        (
            cell(fmt.short_id(row.id), Tone.MUTED),
            cell(row.name, Tone.STRONG),
            cell(row.queue or f"({row.kind})", None if row.queue else Tone.MUTED),
            cell(row.tenant_id or fmt.NEVER, Tone.MUTED),
            cell(row.state, _TONES[row.state]),
            cell(str(row.attempts), Tone.WARN if row.attempts else Tone.MUTED),
            cell(look.since(row.staged_at)),
            _next(row, look),
            cell(row.claimed_by or fmt.NEVER, Tone.MUTED),
            cell(said or fmt.NEVER, None if said else Tone.MUTED),
        ),
        Tone.MUTED if row.state is OutboxState.PUBLISHED else Tone.PLAIN,
    )


def _next(row: OutboxRow, look: Look) -> Cell:
    if row.state is OutboxState.STAGED:
        return cell(look.until(row.next_at or look.now))
    return cell("by hand" if row.state is OutboxState.SET_ASIDE else fmt.NEVER, Tone.MUTED)


def _empty(frame: Frame, look: Look) -> tuple[Line, ...]:
    chosen = frame.needs.outbox.state if frame.needs.outbox else None
    if chosen is not None:
        return (line(f"No row is {chosen}.  ", Span(look.key("states"), Tone.KEY), " shows other states"),)
    return (
        line("The outbox of this database is empty."),
        line(Span("An application with an outbox elsewhere: ultijobs tui --database-url THERE", Tone.MUTED)),
    )


def outbox_summary(frame: Frame | None, look: Look) -> list[str | Span]:
    """`backlog 12 · oldest 0.4s · 2 set aside · last published 0.4s ago by relay-1`."""
    if frame is None or frame.depth is None:
        return []
    depth = frame.depth
    age = None if depth.oldest is None else fmt.ms_between(depth.oldest, look.now)
    late = age is not None and age > _LATE_MS
    parts: list[str | Span] = ["backlog ", Span(fmt.count(depth.staged), Tone.STRONG)]
    if age is not None:
        parts += [" · oldest ", Span(f"{fmt.exact_age(age)}{' !!' if late else ''}", Tone.BAD if late else Tone.PLAIN)]
    parts += [" · ", Span(f"{fmt.count(depth.set_aside)} set aside", Tone.BAD if depth.set_aside.value else Tone.MUTED)]
    published = [row for row in (frame.outbox.rows if frame.outbox else ()) if row.published_at is not None]
    if published:
        last = max(published, key=lambda row: row.published_at or row.staged_at)
        by = f" by {last.claimed_by}" if last.claimed_by else ""
        parts.append(f" · last published {look.since(last.published_at)}{'' if look.absolute else ' ago'}{by}")
    return parts


def blocker_line(frame: Frame | None, look: Look) -> Line:
    """What keeps rows from the queue: no relay, or a transaction whose rows nobody sees before it commits."""
    depth = frame.depth if frame else None
    if frame is None or depth is None:
        return line(" ", Span("nothing waits", Tone.MUTED))
    age = 0.0 if depth.oldest is None else fmt.ms_between(depth.oldest, look.now)
    if depth.staged.value and age > _LATE_MS:
        return line(
            Span(" no relay has taken it", Tone.BAD), f" for {fmt.age(age)}: ", Span("ultijobs relay", Tone.KEY),
            " --app MODULE:NAME; one that runs does not reach the queue",
        )  # fmt: skip
    if (still_open := _oldest_open(frame.health)) is not None:
        return line(
            Span(" not committed yet ", Tone.WARN), still_open,
            Span(f"   what it stages comes when it commits   {look.key('tab.database')} the database", Tone.MUTED),
        )  # fmt: skip
    return line(" ", Span("it is on its way" if depth.staged.value else "nothing waits", Tone.MUTED))


def _oldest_open(health: Health | None) -> str | None:
    if health is None or not health.snapshots or health.snapshots[0].age_ms < _OPEN_MS:
        return None
    oldest = health.snapshots[0]
    who = f'pid {oldest.pid} "{oldest.application}"' if oldest.pid else f"prepared transaction {oldest.query}"
    return f"{who}: transaction open {fmt.exact_age(oldest.age_ms)} ({oldest.state})"


def outbox_panel(row: OutboxRow | None, look: Look) -> list[Line]:
    """The row under the cursor, and what can be done with it."""
    if row is None:
        return []
    claimed = f"{row.claimed_by} {look.since(row.claimed_at)}" if row.claimed_by else "nobody"
    ended = row.published_at or row.set_aside_at
    return [
        rule(f"{row.name} {fmt.short_id(row.id)}", row.state),
        line(
            Span(" staged ", Tone.MUTED), fmt.clock(row.staged_at, now=look.now),
            Span("   tries ", Tone.MUTED), str(row.attempts),
            Span("   claimed by ", Tone.MUTED), claimed,
            Span(f"   {row.state} ", Tone.MUTED), fmt.clock(ended, now=look.now),
            Span("   job ", Tone.MUTED), fmt.short_id(row.job_id),
        ),
        line(Span(" error ", Tone.MUTED), Span(first_line(row.last_error) or "none",
                                               Tone.BAD if row.last_error else Tone.MUTED)),
        _press(row, look),
    ]  # fmt: skip


def _press(row: OutboxRow, look: Look) -> Line:
    press = Span(" press ", Tone.MUTED)
    if row.state is OutboxState.SET_ASIDE:
        also = ", with those of its transaction that were set aside with it"
        return line(
            press,
            Span(look.key("retry"), Tone.KEY),
            f" stage it again{also}   ",
            Span(look.key("open"), Tone.KEY),
            " the error whole",
        )
    if row.job_id is not None:
        return line(press, Span(look.key("open"), Tone.KEY), " its job")
    return line(press, Span(look.key("open"), Tone.KEY), " the row whole")


def outbox_text(row: OutboxRow) -> str:
    """The row as plain text, its error last and whole."""
    facts = {
        "id": row.id, row.kind: row.name, "queue": row.queue, "tenant": row.tenant_id, "state": row.state,
        "tries": row.attempts, "staged": row.staged_at, "claimed": row.claimed_at, "by": row.claimed_by,
        "next": row.next_at, "set aside": row.set_aside_at, "with": row.held_by, "published": row.published_at,
    }  # fmt: skip
    told = "\n".join(f"{name:<10} {value}" for name, value in facts.items() if value is not None)
    return f"{told}\n\n{row.last_error}" if row.last_error else told
