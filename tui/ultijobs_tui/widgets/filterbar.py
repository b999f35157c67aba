"""The third row: the crumb of a screen, and the line to type a filter into."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.field import Field
from ultijobs_tui.widgets.lines import Lines

__all__ = ["FilterBar"]


class _Line(Field):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    ALLOW_SELECT = False

    class Left(Message):
        """Typing was given up."""

    def action_leave(self) -> None:
        self.post_message(self.Left())


class FilterBar(Horizontal):
    """Shows a crumb until `open`; then takes text until enter or esc."""

    class Typed(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Applied(Typed):
        """Enter was pressed."""

    class Closed(Message):
        """Esc was pressed; the filter is what it was."""

    def compose(self) -> ComposeResult:
        yield Lines(id="crumb")
        yield Lines(id="filter-label")
        yield _Line(id="filter-input", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(_Line).cursor_blink = False
        self.query_one("#filter-label", Lines).set_lines([line(" ", Span("filter ", Tone.KEY))])

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def crumb(self, text: Line) -> None:
        self.query_one("#crumb", Lines).set_lines([text])

    def open(self, text: str) -> None:
        field = self.query_one(_Line)
        field.value = text
        field.cursor_position = len(text)
        self.add_class("-open")
        field.focus()

    def close(self) -> None:
        self.remove_class("-open")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Applied(event.value))

    def on__line_left(self) -> None:
        self.post_message(self.Closed())
