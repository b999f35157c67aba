"""A list of keyed rows on the line API: cursor and marks are keys, a refresh redraws the lines that changed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ultijobs_tui.paint import fit, folded, spread
from ultijobs_tui.table import Line, Row, Table, Tone
from ultijobs_tui.widgets.keeping import Cursor
from ultijobs_tui.widgets.tones import ascii_of, ground_of, style_of

__all__ = ["Grid"]

_GUTTER = 2
"""Cells in front of a row: `>` cursor, `*` mark."""
_WHEEL = 3


class Grid(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows a `Table`. Keys come from the screen's actions; the mouse moves the cursor, opens and sorts."""

    ALLOW_SELECT = False

    class Moved(Message):
        """The cursor is on another row, by hand or because its row left."""

        def __init__(self, grid: Grid, key: str | None) -> None:
            super().__init__()
            self.grid = grid
            self.key = key

    class Opened(Message):
        """A row was double-clicked."""

    class SortAsked(Message):
        """The title of a sortable column was clicked."""

        def __init__(self, sort: str) -> None:
            super().__init__()
            self.sort = sort

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._table = Table((), ())
        self._floor: list[int] = []
        self._layout: list[tuple[int, int]] = []
        self._fitted = 0
        self.cursor = Cursor()
        self.redrawn = 0
        """How many lines were asked to be drawn again, since the start."""

    # -- data ------------------------------------------------------------------------------------------
    @property
    def table(self) -> Table:
        return self._table

    def set_table(self, table: Table) -> None:
        """Shows `table` in place: the cursor stays on its key, or goes to the neighbour of a row that left."""
        old, old_key = self._table, self.cursor.key
        self._table = table
        if table.columns != old.columns:
            self._floor = []
        self.cursor.rows([row.key for row in table.rows])
        refitted = self._fit()
        size = Size(self.size.width, max(len(table.rows), len(self._said(self._width))) + 1)
        if size != self.virtual_size:
            self.virtual_size = size
            if self.styles.auto_dimensions:
                self.refresh(layout=True)
        if refitted or bool(table.rows) != bool(old.rows) or (not table.rows and table.empty != old.empty):
            self._redraw_all()
        else:
            self._redraw(_changes(old, old_key, table, self.cursor.key))
        if self.cursor.key != old_key:
            self.post_message(self.Moved(self, self.cursor.key))
        self._show_cursor()

    def forget(self) -> None:
        """Another list follows; the cursor starts at its top."""
        self.cursor.forget()
        self._floor = []

    def go(self, key: str) -> bool:
        """Puts the cursor on `key`, when that row is there."""
        index = self.cursor.index_of(key)
        if index is None:
            return False
        self.move_to(index)
        return True

    def move_to(self, index: int) -> None:
        """Puts the cursor on the row at `index` or the nearest there is: by hand, so it is the operator's choice."""
        before, old = self.cursor.index, self.cursor.key
        self.cursor.choose(index)
        if self.cursor.key != old:
            self._redraw(i for i in (before, self.cursor.index) if i is not None)
            self.post_message(self.Moved(self, self.cursor.key))
        self._show_cursor()

    def move(self, steps: int) -> None:
        self.move_to((self.cursor.index or 0) + steps)

    @property
    def _width(self) -> int:
        """Cells of a line, without a scrollbar."""
        return self.size.width - self.scrollbar_gutter.width

    @property
    def page(self) -> int:
        """Rows that are visible at once."""
        return max(1, self.size.height - 1)

    def set_marks(self, marks: frozenset[str]) -> None:
        changed = self.cursor.marks ^ marks
        self.cursor.marks = marks
        self._redraw(i for i, row in enumerate(self._table.rows) if row.key in changed)

    # -- drawing ---------------------------------------------------------------------------------------
    def render_line(self, y: int) -> Strip:
        width = self._width
        if width != self._fitted:
            self._fit()  # a scrollbar came or went
        base = self.rich_style
        if not self._table.rows:
            return self._blank(y, width, base)
        if y == 0:
            return self._head(width)
        index = self.scroll_offset.y + y - 1
        if index >= len(self._table.rows):
            return Strip.blank(width, base)
        return self._row(self._table.rows[index], width, base)

    def _row(self, row: Row, width: int, base: Style) -> Strip:
        here, marked = row.key == self.cursor.key, row.key in self.cursor.marks
        under = ground_of(self, "cursor" if self.has_focus else "away") if here else Style.null()
        segments = [
            Segment(">" if here else " ", base + style_of(self, Tone.KEY) + under),
            Segment("*" if marked else " ", base + style_of(self, "mark") + under),
        ]
        for n, (index, size) in enumerate(self._layout):
            column, cell = self._table.columns[index], row.cells[index]
            text = fit(cell.text, size, align=column.align, elide=column.elide)
            style = base + style_of(self, cell.tone or row.tone) + under
            segments.append(Segment(ascii_of(self, (" " if n else "") + text), style))
        return Strip(segments).adjust_cell_length(width, base + under)

    def _head(self, width: int) -> Strip:
        style = self.rich_style + style_of(self, "head")
        titles = [
            fit(self._table.columns[index].title, size, align=self._table.columns[index].align)
            for index, size in self._layout
        ]
        text = ascii_of(self, " " * _GUTTER + " ".join(titles))
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _blank(self, y: int, width: int, base: Style) -> Strip:
        said = self._said(width)
        if not 0 < y <= len(said):
            return Strip.blank(width, base)
        spans = spread(said[y - 1], width - _GUTTER)
        segments = [Segment(" " * _GUTTER, base)]
        segments += [Segment(ascii_of(self, span.text), base + style_of(self, span.tone)) for span in spans]
        return Strip(segments).adjust_cell_length(width, base)

    def _said(self, width: int) -> list[Line]:
        """What stands in the place of rows."""
        return [part for each in self._table.empty for part in folded(each, max(1, width - _GUTTER), 0)]

    def _fit(self) -> bool:
        self._fitted = self._width
        width = self._fitted - _GUTTER
        self._floor = self._table.natural(self._floor)
        layout = self._table.layout(width, floor=self._floor) if width > 0 else []
        changed, self._layout = layout != self._layout, layout
        return changed

    def _redraw(self, indexes: Iterable[int]) -> None:
        top, height = self.scroll_offset.y, self.size.height
        for index in set(indexes):
            y = index - top + 1
            if 0 < y < height:
                self.redrawn += 1
                self.refresh(Region(0, y, self.size.width, 1))

    def _redraw_all(self) -> None:
        self.redrawn += self.size.height
        self.refresh()

    def _show_cursor(self) -> None:
        index = self.cursor.index
        if index is None or self.size.height <= 1:
            return
        top = self.scroll_offset.y
        if index < top:
            self.scroll_to(y=index, animate=False, immediate=True)
        elif index >= top + self.page:
            self.scroll_to(y=index - self.page + 1, animate=False, immediate=True)

    # -- the terminal ----------------------------------------------------------------------------------
    def on_resize(self, _event: Resize) -> None:
        self._floor = []
        self._fit()
        self.virtual_size = self.virtual_size.with_width(self.size.width)
        self._redraw_all()
        self._show_cursor()

    def on_focus(self) -> None:
        self._redraw_all()

    def on_blur(self) -> None:
        self._redraw_all()

    def on_click(self, event: Click) -> None:
        if event.y == 0:
            self._sort_at(event.x)
            return
        index = self.scroll_offset.y + event.y - 1
        if index < len(self._table.rows):
            self.move_to(index)
            if event.chain == 2:  # noqa: PLR2004 - a double click
                self.post_message(self.Opened())

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self.move(_WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self.move(-_WHEEL)

    def _sort_at(self, x: int) -> None:
        at = _GUTTER
        for index, size in self._layout:
            if at <= x <= at + size:
                if (sort := self._table.columns[index].sort) is not None:
                    self.post_message(self.SortAsked(sort))
                return
            at += size + 1


def _changes(old: Table, old_key: str | None, new: Table, key: str | None) -> Iterable[int]:
    """The places whose row, or whose cursor, is not what it was."""
    for index, (before, after) in enumerate(zip_longest(old.rows, new.rows)):
        had = before is not None and before.key == old_key
        has = after is not None and after.key == key
        if before != after or had != has:
            yield index
