"""Lays a table out in a given width: drops columns by rank, cuts text at its end, pads to columns."""

from __future__ import annotations

from typing import Final, get_args

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ultijobs_cli.tables import Cell, Table, Tone

__all__ = ["TONES", "lines"]

TONES: Final[dict[Tone, str]] = {tone: tone for tone in get_args(Tone)}
_GAP: Final = 2
_NARROWEST: Final = 8
"""A column that takes what is left is not cut below this."""


def lines(table: Table, width: int | None) -> list[Text]:
    """The table's lines, none wider than `width` cells; None is without a limit."""
    widths = _widths(table, width)
    head = tuple(Cell(title, "bold") for title in table.titles)
    return [_line(cells, widths, table.right) for cells in (head, *table.rows)]


def _widths(table: Table, width: int | None) -> dict[int, int]:
    natural = {
        index: max([cell_len(title), *(cell_len(row[index].text) for row in table.rows)])
        for index, title in enumerate(table.titles)
    }
    if width is None:
        return natural

    def least(index: int) -> int:
        return min(natural[index], table.least[index]) if table.wide[index] else natural[index]

    kept = list(natural)
    while len(kept) > 1 and sum(map(least, kept)) + _GAP * (len(kept) - 1) > width:
        last = max(kept, key=lambda index: (table.ranks[index], index))
        if table.ranks[last] == 0:
            break
        kept.remove(last)
    return _share(kept, natural, table.wide, width - _GAP * (len(kept) - 1))


def _share(kept: list[int], natural: dict[int, int], wide: tuple[bool, ...], room: int) -> dict[int, int]:
    """Takes cells from the widest of the columns that may be cut, until all fit."""
    given = {index: natural[index] for index in kept}
    while (over := sum(given.values()) - room) > 0:
        soft = [index for index in kept if wide[index] and given[index] > _NARROWEST]
        pool = soft or [index for index in kept if given[index] > 1]
        if not pool:
            break
        widest = max(pool, key=given.__getitem__)
        second = max((given[index] for index in pool if index != widest), default=1)
        floor = _NARROWEST if soft else 1
        given[widest] = max(floor, given[widest] - over, min(second, given[widest] - 1))
    return given


def _line(cells: tuple[Cell, ...], widths: dict[int, int], right: tuple[bool, ...]) -> Text:
    line = Text()
    last = max(widths)
    for index, width in widths.items():
        text = _fit(cells[index].text, width)
        pad = " " * (width - cell_len(text))
        if right[index]:
            line.append(pad)
        line.append(text, style=TONES[cells[index].tone])
        if index != last:
            line.append(" " * _GAP if right[index] else pad + " " * _GAP)
    line.rstrip()
    return line


def _fit(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"
