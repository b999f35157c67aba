"""Windows that only tell: why a job waits, a text whole, every key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final
from uuid import UUID

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key

from ultijobs_tui.actions import VIEWS, KeyAction
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.keymap import Keymap
from ultijobs_tui.link import LinkState
from ultijobs_tui.paging import page
from ultijobs_tui.paint import folded
from ultijobs_tui.present.help import EXPLAINED_AT, help_sections, sought
from ultijobs_tui.present.why import why_lines
from ultijobs_tui.screens.modal import Modal
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.lines import Lines

__all__ = ["HelpDialog", "TextDialog", "WhyDialog"]

_AROUND: Final = 6
_LONGEST_SEARCH: Final = 60

_CLOSE: list[BindingType] = [
    Binding("escape,q,enter", "close", show=False),
    Binding("j,down", "scroll('down')", show=False),
    Binding("k,up", "scroll('up')", show=False),
    Binding("pagedown,space", "scroll('page_down')", show=False),
    Binding("pageup", "scroll('page_up')", show=False),
    Binding("y", "copy", show=False),
    Binding("o", "page", show=False),
]


class TextDialog(Modal[None]):
    """Lines to scroll through; `y` copies the text, `o` shows it in the operator's pager. `note` is told below it."""

    BINDINGS: ClassVar[list[BindingType]] = _CLOSE
    HANG: ClassVar[int] = 3
    """Where a line that does not fit goes on below its beginning."""

    def __init__(self, title: str, lines: Sequence[Line], text: str, note: str = "") -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._text = text
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical(id="reader"):
            yield Lines(id="reader-title")
            with VerticalScroll(id="reader-scroll"):
                yield Lines(id="reader-lines", classes="panel")
            yield Lines(id="reader-hint")

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Says what it is and which keys it takes, and shows its lines."""
        self.query_one("#reader-title", Lines).set_lines([line(" ", Span(self._title, Tone.STRONG))])
        hint = line(
            " ", Span("esc", Tone.KEY), " close   ", Span("y", Tone.KEY), " copy   ", Span("j k", Tone.KEY), " scroll",
            right=(Span(f"{self._note} ", Tone.WARN),) if self._note else (),
        )  # fmt: skip
        self.query_one("#reader-hint", Lines).set_lines([hint])
        self.fill(self._lines)

    def on_resize(self) -> None:
        """The text scrolls; title, hint and border stay in sight."""
        self.query_one(VerticalScroll).styles.max_height = max(1, self.size.height - _AROUND)
        self.call_after_refresh(self._refill)

    def fill(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._refill()

    def _refill(self) -> None:
        shown = self.query_one("#reader-lines", Lines)
        width = shown.size.width or self.size.width
        shown.set_lines([part for each in self._lines for part in folded(each, width, self.HANG)])

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, where: str) -> None:
        scroll = self.query_one(VerticalScroll)
        moves: dict[str, Callable[..., None]] = {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "page_down": scroll.scroll_page_down,
            "page_up": scroll.scroll_page_up,
        }
        moves[where](animate=False)

    def action_copy(self) -> None:
        self.desk.copy(self._text)
        self.query_one("#reader-hint", Lines).set_lines([line(" ", Span("copied", Tone.GOOD))])

    def action_page(self) -> None:
        if self._text and (refused := page(self._text, self.desk.suspend)) is not None:
            self.query_one("#reader-hint", Lines).set_lines([line(" ", Span(refused, Tone.WARN))])


class WhyDialog(TextDialog):
    """Why a job is where it is; stays up to date while it is open."""

    def __init__(self, id: UUID) -> None:
        super().__init__("Why is this job where it is?", [], "")
        self._job = id

    def needs(self) -> Needs:
        return Needs(why=self._job)

    def begin(self) -> None:
        super().begin()
        if self.desk.status().state is LinkState.FROZEN:
            self.fill([line(" ", Span("frozen: f on the screen below goes live, then ask again", Tone.WARN))])
        self.desk.poke()

    def receive(self, frame: Frame | None) -> None:
        if frame is None or not frame.answers(self.needs()):
            return
        self._text = frame.why.frees if frame.why else ""
        width = self.query_one("#reader-lines", Lines).size.width
        self.fill(why_lines(frame.why, frame.failures.get("why"), self.desk.look(), width))


class HelpDialog(TextDialog, inherit_bindings=False):
    """Every key of the screen below, and why one is grey. What is typed is searched for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("enter", "close", show=False),
        Binding("down", "scroll('down')", show=False),
        Binding("up", "scroll('up')", show=False),
        Binding("pagedown", "scroll('page_down')", show=False),
        Binding("pageup", "scroll('page_up')", show=False),
        Binding("backspace", "shorten", show=False),
    ]
    HANG = EXPLAINED_AT

    def __init__(self, view: str, refusal: Callable[[KeyAction], str | None], keys: Keymap) -> None:
        self._sections = help_sections(view, refusal, keys)
        self._sought = ""
        super().__init__(f"Help: {VIEWS[view]}", sought(self._sections, ""), "")

    def begin(self) -> None:
        self._search("")
        hint = line(
            " ", Span("esc", Tone.KEY), " what was typed, then close   ", Span("↑ ↓ pgup pgdn", Tone.KEY), " scroll"
        )
        self.query_one("#reader-hint", Lines).set_lines([hint])

    def on_resize(self) -> None:
        """The window stays as it is while fewer lines are found."""
        self.query_one(VerticalScroll).styles.height = max(1, self.size.height - _AROUND)
        self.call_after_refresh(self._refill)

    def on_key(self, event: Key) -> None:
        if event.is_printable and event.character is not None:
            event.stop()
            self._search(self._sought + event.character)

    def action_shorten(self) -> None:
        self._search(self._sought[:-1])

    def action_leave(self) -> None:
        if self._sought:
            self._search("")
        else:
            self.action_close()

    def _search(self, text: str) -> None:
        self._sought = text.lstrip()[:_LONGEST_SEARCH]
        said = Span(f"search {self._sought}▏ ", Tone.ACCENT) if self._sought else Span("type to search ", Tone.MUTED)
        title = line(" ", Span(self._title, Tone.STRONG), right=(said,))
        self.query_one("#reader-title", Lines).set_lines([title])
        self.fill(sought(self._sections, self._sought.strip()))
        self.query_one(VerticalScroll).scroll_home(animate=False)
