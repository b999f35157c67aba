"""What screens hand to widgets: lines of spans and tables of keyed rows. No job is known here, and no Textual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ["Cell", "Column", "Line", "Row", "Span", "Table", "Tone", "cell", "line"]


class Tone(StrEnum):
    """The role of a piece of text; the theme gives it a colour, never its meaning."""

    PLAIN = "plain"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    ACCENT = "accent"
    STRONG = "strong"
    KEY = "key"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    tone: Tone = Tone.PLAIN
    press: str | None = None
    """The action that a click on it means."""


@dataclass(frozen=True, slots=True)
class Line:
    left: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    fill: str = " "
    fill_tone: Tone = Tone.PLAIN


def line(*parts: str | Span, right: Sequence[str | Span] = ()) -> Line:
    """A line of plain texts and spans."""
    return Line(tuple(map(_span, parts)), tuple(map(_span, right)))


def rule(title: str = "", right: str = "") -> Line:
    """A line drawn across, with its title on it."""
    left = (Span("── ", Tone.MUTED), Span(title, Tone.STRONG), Span(" ", Tone.MUTED)) if title else ()
    end = (Span(f" {right} ", Tone.MUTED), Span("──", Tone.MUTED)) if right else ()
    return Line(left, end, fill="─", fill_tone=Tone.MUTED)


def _span(part: str | Span) -> Span:
    return part if isinstance(part, Span) else Span(part)


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    tone: Tone | None = None
    """None takes the tone of the row."""


def cell(text: str, tone: Tone | None = None) -> Cell:
    return Cell(text, tone)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: as wide as its longest cell between `width` and `most`; `grow` shares what is left over.

    Columns with the highest `drop` go first when the screen is too narrow; `drop` 0 stays.
    """

    title: str
    width: int
    most: int | None = None
    align: Literal["left", "right"] = "left"
    elide: Literal["end", "start"] = "end"
    drop: int = 0
    grow: bool = False
    sort: str | None = None
    """What a click on its title sorts by."""


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    cells: tuple[Cell, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: tuple[Line, ...] = ()
    """What to say when there are no rows."""

    def layout(self, width: int, *, floor: Sequence[int] = ()) -> list[tuple[int, int]]:
        """The columns that fit in `width` with one cell between them, and their sizes.

        `floor` holds the natural sizes chosen before: a column does not shrink while a screen is open.
        """
        sizes = self.natural(floor)
        shown = list(range(len(self.columns)))
        while shown and sum(self._least(i, sizes) for i in shown) + len(shown) - 1 > width:
            last = max(shown, key=lambda i: (self.columns[i].drop, i))
            if self.columns[last].drop == 0:
                break
            shown.remove(last)
        spare = width - (len(shown) - 1) - sum(sizes[i] for i in shown)
        growing = [i for i in shown if self.columns[i].grow]
        if spare < 0:
            for i in growing:
                give = min(-spare, sizes[i] - self._least(i, sizes))
                sizes[i] -= give
                spare += give
        elif growing:
            share, rest = divmod(spare, len(growing))
            for n, i in enumerate(growing):
                sizes[i] += share + (1 if n < rest else 0)
        return [(i, sizes[i]) for i in shown if sizes[i] > 0]

    def natural(self, floor: Sequence[int] = ()) -> list[int]:
        """The size that each column asks for, by its longest cell."""
        sizes: list[int] = []
        for i, column in enumerate(self.columns):
            size = max(column.width, floor[i] if i < len(floor) else 0)
            if column.most is not None and not column.grow:
                longest = max((len(row.cells[i].text) for row in self.rows), default=0)
                size = max(size, min(column.most, longest))
            sizes.append(size)
        return sizes

    def _least(self, index: int, sizes: Sequence[int]) -> int:
        column = self.columns[index]
        return column.width if column.grow else sizes[index]
