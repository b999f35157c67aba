"""The one place where text from the queue becomes text on a screen: inert, elided, padded, measured in cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from rich.cells import cell_len, chop_cells, set_cell_size

from ultijobs.inspection import inert
from ultijobs_tui.table import Line, Span, Table

__all__ = ["ASCII", "clean", "fit", "folded", "line_text", "signs", "spread", "table_text"]

ASCII: Final = str.maketrans(
    {
        "…": "~", "–": "-", "·": ".", "●": "*", "✓": "+", "✗": "x", "▶": ">", "‹": "<", "→": ">", "⇒": ">", "↑": "^",
        "↓": "v", "─": "-", "│": "|", "━": "=", "☾": "z", "✉": "@", "↻": "r", "▏": "|", "▲": "^", "▼": "v", "“": '"',
        "▁": "_", "▂": "_", "▃": ".", "▄": "-", "▅": "-", "▆": "=", "▇": "#", "█": "#", "”": '"', "⋮": ":",
        "◀": "<", "┄": "-", "−": "-",
    }
)  # fmt: skip

_WORDS: Final = re.compile(r"\S+\s*|\s+")


def clean(text: str) -> str:
    """`text` on one line, with nothing in it that a terminal obeys."""
    return inert(text, line=True)


def signs(text: str) -> str:
    """`text` where each character that could act on a terminal is one visible sign, so that positions stay."""
    return "".join(one if inert(one, line=True) == one else _sign(one) for one in text)


def _sign(active: str) -> str:
    return chr(0x2400 + ord(active)) if active < " " else "\ufffd"


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


def folded(row: Line, width: int, indent: int = 1, *, most: int | None = None) -> list[Line]:
    """`row` over as many lines as its left part needs, broken at blanks; those after the first begin `indent` cells in.

    Its right part stays on the first line. What does not fit into `most` lines is cut from the last one, with `…`.
    """
    taken = sum(cell_len(clean(span.text)) for span in row.right)
    room = width - taken - (1 if taken else 0)
    if sum(cell_len(clean(span.text)) for span in row.left) <= room:
        return [row]
    lines: list[list[Span]] = [[]]
    used, margin = 0, " " * indent
    for span, word in _words(row.left, max(1, width - indent)):
        size = cell_len(word.rstrip())
        if used > indent and used + size > room and (most is None or len(lines) < most):
            lines[-1][-1] = replace(lines[-1][-1], text=lines[-1][-1].text.rstrip())
            lines.append([Span(margin)])
            used, room = indent, width
        lines[-1].append(Span(word, span.tone, span.press))
        used += cell_len(word)
    lines[-1][-1] = replace(lines[-1][-1], text=lines[-1][-1].text.rstrip())
    first, *rest = lines
    return [Line(tuple(first), row.right, row.fill, row.fill_tone), *(Line(tuple(more)) for more in rest)]


def _words(spans: Sequence[Span], room: int) -> Iterator[tuple[Span, str]]:
    """Each word with the blanks behind it; one that is longer than a line in pieces."""
    for span in spans:
        for word in _WORDS.findall(clean(span.text)):
            for piece in [word] if cell_len(word.rstrip()) <= room else chop_cells(word, room):
                yield span, piece


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
        return [line_text(part, width) for line in table.empty for part in folded(line, width, 0)]
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
