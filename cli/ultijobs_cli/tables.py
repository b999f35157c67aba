"""What a person is shown, as values: tables that fit the terminal, pairs, paragraphs. All text in them is data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from ultijobs.inspection import inert

__all__ = ["Block", "Cell", "Column", "Pairs", "Paragraph", "Table", "Tone", "grid"]

Row = TypeVar("Row")
Tone = Literal["", "bold", "dim", "red", "yellow", "green", "blue"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and the tone it is shown in."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """How a row is shown in one column. Where space is short, the columns of the highest `rank` go first."""

    title: str
    value: Callable[[Row], str | Cell]
    rank: int = 0
    right: bool = False
    wide: bool = False
    """Takes what space is left, and is cut at the end."""
    least: int = 8
    """Cells that a wide column is given before columns of a higher rank are."""


@dataclass(frozen=True, slots=True)
class Table:
    titles: tuple[str, ...]
    ranks: tuple[int, ...]
    right: tuple[bool, ...]
    wide: tuple[bool, ...]
    least: tuple[int, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and values, one pair a line."""

    pairs: tuple[tuple[str, Cell], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that keeps its line breaks and is never cut; prose is broken at blanks to be read."""

    text: str
    tone: Tone = ""
    title: str = ""
    prose: bool = False


Block = Table | Pairs | Paragraph


def grid(rows: Sequence[Row], columns: Sequence[Column[Row]], *, empty: str) -> Table:
    """A table of `rows`; `empty` is what is said when there are none."""
    return Table(
        titles=tuple(column.title for column in columns),
        ranks=tuple(column.rank for column in columns),
        right=tuple(column.right for column in columns),
        wide=tuple(column.wide for column in columns),
        least=tuple(column.least for column in columns),
        rows=tuple(tuple(_cell(column.value(row)) for column in columns) for row in rows),
        empty=empty,
    )


def _cell(value: str | Cell) -> Cell:
    cell = value if isinstance(value, Cell) else Cell(value)
    return Cell(inert(cell.text, line=True), cell.tone)
