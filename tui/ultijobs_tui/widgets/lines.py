"""A block of lines, each of spans: bars, crumbs, footers, panels. A changed line is redrawn alone."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ultijobs_tui.paint import spread
from ultijobs_tui.table import Line
from ultijobs_tui.widgets.tones import ascii_of, style_of

__all__ = ["Lines"]


class Lines(Widget):
    """Shows what `set_lines` was last given; what does not fit below is cut."""

    ALLOW_SELECT = False

    class Pressed(Message):
        """A span that means an action was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self.redrawn = 0
        """How many lines were asked to be drawn again, since the start."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    def set_lines(self, lines: Sequence[Line]) -> None:
        before, self._lines = self._lines, tuple(lines)
        if len(before) != len(self._lines) and self.styles.auto_dimensions:
            self.refresh(layout=True)
            return
        changed = [
            y
            for y in range(max(len(before), len(self._lines)))
            if y >= len(before) or y >= len(self._lines) or before[y] != self._lines[y]
        ]
        self.redrawn += len(changed)
        for y in changed:
            self.refresh(Region(0, y, self.size.width, 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        return max(1, len(self._lines))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if y >= len(self._lines):
            return Strip.blank(width, base)
        segments = [
            Segment(ascii_of(self, span.text), base + style_of(self, span.tone))
            for span in spread(self._lines[y], width)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def on_resize(self, _event: Resize) -> None:
        self.refresh()

    def on_click(self, event: Click) -> None:
        if not 0 <= event.y < len(self._lines):
            return
        at = 0
        for span in spread(self._lines[event.y], self.size.width):
            at += cell_len(span.text)
            if event.x < at:
                if span.press is not None:
                    self.post_message(self.Pressed(span.press))
                return
