"""Puts blocks on a console, as inert text: nothing in them is markup, a link or a control sequence."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from rich.console import Console
from rich.text import Text

from ultijobs.inspection import inert
from ultijobs_cli.layout import TONES, lines
from ultijobs_cli.tables import Block, Cell, Pairs, Paragraph, Table

__all__ = ["paint"]

_READABLE: Final = 100
"""Cells in a line of prose."""


def paint(stream: TextIO, blocks: Sequence[Block]) -> None:
    """Writes `blocks` to `stream`, a blank line between two; colours only on a terminal without NO_COLOR."""
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    for index, block in enumerate(blocks):
        if index:
            console.print()
        for line in _lines(block, _width(console)):
            console.print(line, soft_wrap=True)


def _width(console: Console) -> int | None:
    """Piped text is never cut, unless COLUMNS asks for it."""
    return console.width if console.is_terminal or os.environ.get("COLUMNS", "").isdigit() else None


def _lines(block: Block, width: int | None) -> list[Text]:
    match block:
        case Table():
            return lines(block, width) if block.rows else [Text(inert(block.empty), style="dim")]
        case Pairs():
            widest = max((len(name) for name, _ in block.pairs), default=0)
            return [*_title(block.title), *(_pair(name, cell, widest) for name, cell in block.pairs)]
        case Paragraph():
            text = textwrap.fill(block.text, min(width or _READABLE, _READABLE)) if block.prose else block.text
            return [*_title(block.title), Text(inert(text), style=TONES[block.tone])]


def _title(title: str) -> list[Text]:
    return [Text(inert(title, line=True), style="bold")] if title else []


def _pair(name: str, cell: Cell, widest: int) -> Text:
    line = Text()
    line.append(f"{name:<{widest}}  ", style="dim")
    line.append(inert(cell.text, line=True), style=TONES[cell.tone])
    return line
