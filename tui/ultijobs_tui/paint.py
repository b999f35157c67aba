"""The one place where text from the queue becomes text on a screen: inert, elided, padded, measured in cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from rich.cells import cell_len, set_cell_size

from ultijobs.inspection import inert
from ultijobs_tui.table import Line, Span, Table

__all__ = ["ASCII", "clean", "fit", "line_text", "spread", "table_text"]

ASCII: Final = str.maketrans(
    {
        "…": "~", "–": "-", "·": ".", "●": "*", "✓": "+", "✗": "x", "▶": ">", "‹": "<", "→": ">", "⇒": ">", "↑": "^",
        "↓": "v", "─": "-", "│": "|", "━": "=", "☾": "z", "✉": "@", "↻": "r", "▏": "|", "▲": "^", "▼": "v", "“": '"',
        "▁": "_", "▂": "_", "▃": ".", "▄": "-", "▅": "-", "▆": "=", "▇": "#", "█": "#", "”": '"', "⋮": ":",
        "◀": "<", "┄": "-", "−": "-",
    }
)  # fmt: skip


def clean(text: str) -> str:
    """`text` on one line, with nothing in it that a terminal obeys."""
    return inert(text, line=True)


def fit(
    text: str, width: int, *, align: Literal["left", "right"] = "left", elide: Literal["end", "start"] = "end"
) -> str:
    """`text` in exactly `width` cells: padded, or cut with `…` on the side named."""
    if width <= 0:
        return ""
    if len(text) > 4 * width + 64:
        # Text of any length costs what is shown of it.
        text = text[: 4 * width + 64] if elide == "end" else text[-4 * width - 64 :]
    text = clean(text)
    size = cell_len(text)
    if size > width:
        if elide == "end":
            return set_cell_size(text, width - 1) + "…"
        tail = text
        while cell_len(tail) > width - 1:
            tail = tail[1:]
        return set_cell_size("…" + tail, width)
    pad = " " * (width - size)
    return pad + text if align == "right" else text + pad


def spread(line: Line, width: int) -> list[Span]:
    """The spans of `line` in exactly `width` cells: the left part is cut before the right one."""
    right = _cut(line.right, width)
    taken = sum(cell_len(span.text) for span in right)
    left = _cut(line.left, max(0, width - taken - (1 if taken else 0)))
    used = sum(cell_len(span.text) for span in left)
    gap = width - used - taken
    fill = [Span(line.fill * gap, line.fill_tone)] if gap > 0 else []
    return [*left, *fill, *right]


def _cut(spans: Sequence[Span], room: int) -> list[Span]:
    kept: list[Span] = []
    for span in spans:
        if room <= 0:
            break
        text = clean(span.text if len(span.text) <= 4 * room + 64 else span.text[: 4 * room + 64])
        size = cell_len(text)
        if size > room:
            text, size = set_cell_size(text, room - 1) + "…", room
        kept.append(Span(text, span.tone, span.press))
        room -= size
    return kept


def line_text(line: Line, width: int) -> str:
    """A line without its colours."""
    return "".join(span.text for span in spread(line, width)).rstrip()


def table_text(table: Table, width: int) -> list[str]:
    """A table as plain lines, its head first; what it says when it is empty instead of rows."""
    if not table.rows:
        return [line_text(line, width) for line in table.empty]
    layout = table.layout(width)
    head = " ".join(fit(table.columns[index].title, size, align=table.columns[index].align) for index, size in layout)
    body = [
        " ".join(
            fit(row.cells[index].text, size, align=table.columns[index].align, elide=table.columns[index].elide)
            for index, size in layout
        )
        for row in table.rows
    ]
    return [text.rstrip() for text in (head, *body)]
