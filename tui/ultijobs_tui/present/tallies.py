"""Jobs counted by tenant, queue or name: who has how many, in which state, since when."""

from __future__ import annotations

from typing import Final

from ultijobs.inspection import Count, Field, JobState, Tally
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.filters import quoted
from ultijobs_tui.table import Cell, Column, Row, Span, Table, Tone, cell, line

__all__ = ["NOBODY", "narrowed", "tally_key", "tally_table"]

NOBODY: Final = "(none)"
"""How jobs without a tenant are called."""
_WAITING: Final = (JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.SUSPENDED)
_STOPPED: Final = (JobState.DEAD, JobState.FAILED)
_SHORT: Final = {JobState.SUSPENDED: "SUSP"}


def tally_key(tally: Tally) -> str:
    return f"={tally.value}" if tally.value is not None else NOBODY


def narrowed(where: str, by: Field, tally: Tally) -> str | None:
    """The filter that lists the jobs of one row; None for those without a tenant, which no word names."""
    return None if tally.value is None else f"{where} {by}:{quoted(tally.value)}".strip()


def tally_table(frame: Frame, by: Field, look: Look, *, stopped: bool, find: str = "") -> Table:
    """One row per value, the most first. `stopped` counts what is dead, else what waits and runs."""
    states = _STOPPED if stopped else _WAITING
    columns = (
        Column(str(by).upper(), 12, 32),
        Column("JOBS", 7, 9, align="right"),
        *(Column(_SHORT.get(state, state.upper()), 7, 9, align="right", drop=3) for state in states),
        Column("FIRST STOP" if stopped else "OLDEST DUE", 10, align="right"),
        Column("LAST STOP" if stopped else "LAST DUE", 9, align="right", drop=2),
        Column("", 0, grow=True, drop=9),
    )
    if frame.tally is None:
        why = frame.failures.get("tally")
        return Table(columns, (), (line(Span(f"?? {why}" if why else "reading…", Tone.WARN if why else Tone.MUTED)),))
    found = [one for one in frame.tally if find.casefold() in (one.value or NOBODY).casefold()]
    return Table(columns, tuple(_row(one, states, look) for one in found), (line("No job to count."),))


def _row(one: Tally, states: tuple[JobState, ...], look: Look) -> Row:
    cells: tuple[Cell, ...] = (
        cell(one.value if one.value is not None else NOBODY, Tone.STRONG if one.value is not None else Tone.MUTED),
        cell(fmt.count(one.count), Tone.STRONG),
        *(cell(fmt.count(Count(one.states.get(state, 0), one.count.kind)), Tone.MUTED) for state in states),
        cell(_when(one, look, first=True)),
        cell(_when(one, look, first=False), Tone.MUTED),
        cell(""),
    )
    return Row(tally_key(one), cells)


def _when(one: Tally, look: Look, *, first: bool) -> str:
    at = one.first_at if first else one.last_at
    return look.until(at) if at > look.now else look.since(at)
