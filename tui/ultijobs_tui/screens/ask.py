"""One question with one line for the answer."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from ultijobs_tui.screens.modal import Modal
from ultijobs_tui.table import Span, Tone, line
from ultijobs_tui.widgets.field import Field
from ultijobs_tui.widgets.lines import Lines

__all__ = ["AskDialog"]


class AskDialog(Modal[str | None]):
    """The text that was typed; None when it was closed or left empty."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    def __init__(self, title: str, label: str, hint: str, *, value: str = "", doubt: str = "") -> None:
        """`value` stands there already; `doubt` is what speaks against it."""
        super().__init__()
        self._words = title, label, hint
        self._value = value
        self._doubt = doubt

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Lines(id="ask-title")
            with Horizontal(classes="field"):
                yield Lines(id="ask-label", classes="label")
                yield Field(self._value, id="answer", compact=True, select_on_focus=False)
            if self._doubt:
                yield Lines(id="ask-doubt")
            yield Lines(id="ask-hint")

    def on_mount(self) -> None:
        title, label, hint = self._words
        self.query_one("#ask-title", Lines).set_lines([line(" ", Span(title, Tone.STRONG))])
        self.query_one("#ask-label", Lines).set_lines([line(" ", Span(label, Tone.MUTED))])
        keys = (" ", Span("enter", Tone.KEY), " go   ", Span("esc", Tone.KEY), " close   ", Span(hint, Tone.MUTED))
        self.query_one("#ask-hint", Lines).set_lines([line(*keys)])
        for doubted in self.query("#ask-doubt").results(Lines):
            doubted.set_lines([line(" ", Span(self._doubt, Tone.WARN))])
        field = self.query_one("#answer", Input)
        field.cursor_blink = False
        field.focus()

    def action_close(self) -> None:
        self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
