"""What operators did: who, when, to what, why, with which result, and the command that does the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs.inspection import ActivityRow, undone_by
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.present.plan import command_lines
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["activity_panel", "activity_summary", "activity_table", "activity_text"]

_OPPOSITE: Final = {
    "pause": "resume",
    "resume": "pause",
    "drain-worker": "resume",
    "resume-worker": "drain",
}
_LONG_OPEN_MS: Final = 60_000


def activity_table(frame: Frame, look: Look, *, find: str = "") -> Table:
    """One row per act, the newest first."""
    columns = (
        Column("WHEN", 8, 11, align="right"),
        Column("WHO", 8, 22 if look.wide else 11),
        Column("FROM", 4, 5, drop=3),
        Column("ACTION", 8, 18 if look.wide else 12),
        Column("WHERE · WHICH", 14, grow=True),
        Column("REASON", 8, 24, drop=2),
        Column("RESULT", 14, 24 if look.wide else 16),
        Column("UNDO", 8, 9, drop=4),
    )
    rows = frame.activity
    if rows is None:
        return unread(columns, frame.failures.get("activity"))
    shown = [row for row in rows if holds(find, _fields(row))]
    if (said := nothing_found(columns, find, rows if not shown else (), "act")) is not None:
        return said
    empty = line("Nobody has acted yet. Pauses, retries, cancels and drains are listed here, from every surface.")
    stale = _overtaken(rows)
    return Table(columns, tuple(_row(row, look, stale=row.id in stale) for row in shown), (empty,))


def _overtaken(rows: Sequence[ActivityRow]) -> set[UUID]:
    """Acts that a later one of these undid, or that a later one on the same queue or worker made history."""
    stale: set[UUID] = set()
    later: set[str] = set()
    for row in rows:
        if not row.done:
            continue
        if row.target in later or f"act:{row.id}" in later:
            stale.add(row.id)
        if row.target.startswith(("queue:", "worker:", "act:")):
            later.add(row.target)
    return stale


def _fields(row: ActivityRow) -> dict[str, str | None]:
    return {
        "who": row.actor,
        "from": row.source,
        "action": row.action,
        "target": row.target,
        "reason": row.reason,
        "command": row.equivalent,
    }


def _row(row: ActivityRow, look: Look, *, stale: bool) -> Row:
    return Row(
        str(row.id),
        (
            cell(fmt.clock(row.at, now=look.now), Tone.MUTED),
            cell(row.actor, Tone.STRONG),
            cell(row.source, Tone.MUTED),
            cell(_verb(row)),
            cell(row.target),
            cell(row.reason or fmt.NEVER, None if row.reason else Tone.MUTED),
            _result(row, look),
            _undo(row, look, stale=stale),
        ),
    )


def _verb(row: ActivityRow) -> str:
    """The act with what makes it special: the step it starts from, the one it is for."""
    step = row.detail.get("from_step") or row.detail.get("only_step")
    one = " (canary)" if row.detail.get("limit") == 1 else ""
    return f"{row.action}{f' from {step}' if step else ''}{one}"


def _result(row: ActivityRow, look: Look) -> Cell:
    if row.finished_at is None:
        open_for = fmt.ms_between(row.at, look.now)
        if open_for > _LONG_OPEN_MS:
            return cell(f"? open {fmt.age(open_for)}", Tone.WARN)
        return cell("under way …", Tone.ACCENT)
    done, refused, failed = row.done or 0, row.refused or 0, row.failed or 0
    if failed:
        return cell(f"✗ {failed:,} failed of {row.matched or 0:,}", Tone.BAD)
    if refused:
        return cell(f"✓ {done:,}, {refused:,} refused", Tone.WARN)
    return cell(f"✓ {done:,} of {row.matched or done:,}", Tone.GOOD if done else Tone.MUTED)


def _undo(row: ActivityRow, look: Look, *, stale: bool) -> Cell:
    """What takes it back: the key of the screen where the queue or the worker is, or the command in the panel."""
    if stale or undone_by(row, look.now) is None:
        return cell(fmt.NEVER, Tone.MUTED)
    opposite = _OPPOSITE.get(row.action)
    return cell("jobs undo" if opposite is None else f"{look.key(opposite)} {opposite}", Tone.KEY)


def activity_summary(rows: Sequence[ActivityRow] | None) -> list[str | Span]:
    if rows is None:
        return []
    actors = len({row.actor for row in rows})
    people = "person" if actors == 1 else "people"
    return [f"{len(rows)} act{'' if len(rows) == 1 else 's'} of {actors} {people}"]


def activity_panel(row: ActivityRow | None, look: Look, width: int) -> list[Line]:
    """The act under the cursor whole, with the command to do it again."""
    if row is None:
        return []
    ended = "not finished" if row.finished_at is None else fmt.took(fmt.ms_between(row.at, row.finished_at))
    detail = ", ".join(f"{name} {value}" for name, value in sorted(row.detail.items())) or fmt.NEVER
    lines = [
        rule(f"{_verb(row)} by {row.actor}", fmt.clock(row.at, now=look.now)),
        line(Span(" target ", Tone.MUTED), row.target, Span("   with ", Tone.MUTED), detail),
        line(
            Span(" matched ", Tone.MUTED), _number(row.matched), Span("   done ", Tone.MUTED), _number(row.done),
            Span("   refused ", Tone.MUTED), _number(row.refused), Span("   failed ", Tone.MUTED), _number(row.failed),
            Span("   as of ", Tone.MUTED), fmt.clock(row.as_of, now=look.now), Span("   took ", Tone.MUTED), ended,
        ),
        line(Span(" reason ", Tone.MUTED), row.reason or "none was given"),
    ]  # fmt: skip
    if (back := undone_by(row, look.now)) is not None:
        lines += command_lines(back, width, label="undo")
    if row.equivalent:
        lines += command_lines(row.equivalent, width)
        lines.append(line(Span(" press ", Tone.MUTED), Span(look.key("open"), Tone.KEY), " whole   ",
                          Span(look.key("copy.cli"), Tone.KEY), " copy the command"))  # fmt: skip
    return lines


def activity_text(row: ActivityRow) -> str:
    """The act as plain text, nothing left out."""
    facts = {
        "id": row.id,
        "at": row.at,
        "actor": row.actor,
        "source": row.source,
        "action": row.action,
        "target": row.target,
        "reason": row.reason,
        "as of": row.as_of,
        "matched": row.matched,
        "done": row.done,
        "refused": row.refused,
        "failed": row.failed,
        "finished": row.finished_at or "not finished: it is under way, or what carried it out is gone",
        **{f"with {name}": value for name, value in sorted(row.detail.items())},
        "command": row.equivalent,
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items() if value is not None)


def _number(value: int | None) -> str:
    return fmt.NEVER if value is None else f"{value:,}"
