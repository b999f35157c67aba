"""The frame that every screen has: bars, filter, result, footer; and how a key becomes what it does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final, cast

from textual.app import ComposeResult
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget

from ultijobs.inspection import ActOutcome, Plan
from ultijobs_tui.actions import KeyAction, key_name
from ultijobs_tui.desk import Desk, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.keymap import Keymap
from ultijobs_tui.link import LinkState
from ultijobs_tui.present.bars import Status, footer_line, lost_lines, replay_line, stale_line, state_line, tabs_line
from ultijobs_tui.table import Line, Tone
from ultijobs_tui.widgets.filterbar import FilterBar
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["CockpitScreen"]

_FRAME_ROWS: Final = 7
"""State, tabs, crumb, result, footer; and at the least one blank below a list and one below its panel."""


class CockpitScreen(Screen[None]):
    """Subclasses say what they need, show what came, and name what their keys do."""

    VIEW: ClassVar[str]
    PANEL_ROWS: ClassVar[int] = 0
    """Rows of the panel that follows a list which grows with its rows; there is none on a short terminal."""
    HEAD_ROWS: ClassVar[int] = 0
    """Rows above such a list."""
    ALLOW_SELECT = False
    _composed = False
    _hint: Line | None = None
    _good: Frame | None = None
    """The last answer that was whole."""
    _failures: Mapping[str, str] = {}

    def __init__(self) -> None:
        super().__init__()
        # Textual parses every style sheet again, twice, for a screen that it takes for older than them; one that is
        # made now is styled by them as they are. Should the attribute go, a first visit is slower and no more.
        self._css_update_count: int = getattr(self.desk, "_css_update_count", -1)

    @property
    def desk(self) -> Desk:
        return cast("Desk", self.app)

    @property
    def keys(self) -> Keymap:
        return self.desk.settings.keys

    @property
    def alive(self) -> bool:
        """True between its first and its last moment on the stack; a late message finds no widget after that."""
        return self._composed and self.display and self.is_attached

    # -- for subclasses --------------------------------------------------------------------------------
    @abstractmethod
    def needs(self) -> Needs: ...

    @abstractmethod
    def body(self) -> Iterable[Widget]: ...

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Presents a frame that answers `needs`."""

    @abstractmethod
    def crumb(self) -> Line: ...

    def handlers(self) -> Mapping[str, Callable[[], None]]:
        """What the keys of this screen do, by action id."""
        return {}

    def unfit(self, action: KeyAction) -> str | None:  # noqa: ARG002 - a screen without conditions has none
        """Why an action does not fit what is under the cursor."""
        return None

    def arrive(self, place: Place) -> None:
        """The operator came here by a link."""

    def place(self) -> Place | None:
        """Where the operator is, to come back to."""
        return Place(self.VIEW, key=self.query(Grid).first().cursor.key)

    def tenant_here(self) -> str | None:
        """The tenant of what is under the cursor."""
        return None

    def holder(self) -> Place | str:
        """Where the holder of what is under the cursor is shown, or why there is none."""
        return "nothing is under the cursor"

    def leave_filter(self) -> None:
        """Esc on the filter."""

    def go_up(self) -> None:
        """Esc: back to the row that led here; without one, the whole list."""
        if not self.desk.up():
            self.leave_filter()

    def apply_filter(self, text: str) -> None:
        """Enter on the filter."""

    def filter_text(self) -> str:
        return ""

    def type_filter(self, text: str) -> None:
        """A letter on the filter."""

    def acted(self, plan: Plan, outcome: ActOutcome) -> None:
        """An act was carried out."""

    def shown_where(self) -> str:
        """What the list with the cursor is narrowed by, as an export says it."""
        return self.filter_text()

    # -- the frame -------------------------------------------------------------------------------------
    def compose(self) -> ComposeResult:
        yield Lines(id="state")
        yield Lines(id="tabs")
        yield FilterBar(id="filter")
        yield from self.body()
        yield Lines(id="result")
        yield Lines(id="footer")

    def on_mount(self) -> None:
        self._composed = True
        self.focus_list()
        self.bars()

    def on_screen_resume(self) -> None:
        self.receive(self.desk.last_frame)
        self.desk.poke()
        if self._good is None and self.desk.status().state is LinkState.FROZEN:
            self.desk.say("frozen before this screen was read: f goes live", Tone.WARN)

    def on_resize(self, _event: Resize) -> None:
        look = self.desk.look()
        self.set_class(not look.roomy, "-short")
        for grid in self.query(".grows").results(Grid):
            around = _FRAME_ROWS + self.HEAD_ROWS + (self.PANEL_ROWS if look.roomy else 0)
            grid.styles.max_height = max(4, look.height - around)
        self.receive(self.desk.last_frame)

    @property
    def grid(self) -> Grid:
        """The list that has the cursor."""
        focused = self.focused
        return focused if isinstance(focused, Grid) else self.query(Grid).first()

    def focus_list(self) -> None:
        self.query(Grid).first().focus()

    def receive(self, frame: Frame | None) -> None:
        """Shows a frame; one that answers another question only feeds the bars."""
        if not self.alive:
            return
        if frame is not None and frame.answers(self.needs()):
            frame = frame.filled(self._good)
            if not frame.failures:
                self._good = frame
            self._failures = frame.failures
            self.show(frame)
        self.bars()

    def bars(self) -> None:
        if not self.alive:
            return
        desk, look = self.desk, self.desk.look()
        status = desk.status(marks=self.marks_shown())
        frame = desk.last_frame
        self.query_one("#state", Lines).set_lines([state_line(status, look)])
        lost = status.state is LinkState.LOST
        tabs = lost_lines(status)[0] if lost else tabs_line(self.tab(), frame.overview if frame else None, look)
        self.query_one("#tabs", Lines).set_lines([tabs])
        self.query_one(FilterBar).crumb(self._crumb(status, lost=lost))
        self.query_one("#result", Lines).set_lines([self._hint or desk.result])
        self.query_one("#footer", Lines).set_lines([footer_line(self.VIEW, self.refusal, look)])
        self.set_class(lost, "-lost")

    def _crumb(self, status: Status, *, lost: bool) -> Line:
        if lost:
            return lost_lines(status)[1]
        if status.state is LinkState.REPLAY:
            return replay_line(status, self.desk.look())
        if self._failures and self._good is not None:
            return stale_line(self._failures, self._good.as_of)
        return self.crumb()

    def tab(self) -> str:
        """The tab that is shown as open."""
        return self.VIEW

    def marks_shown(self) -> int:
        return 0

    # -- keys ------------------------------------------------------------------------------------------
    def refusal(self, action: KeyAction) -> str | None:
        return self.desk.refusal(action) or self.unfit(action)

    def action_do(self, id: str) -> None:
        """Does what a key means, or says why not."""
        if not self.alive:
            return
        action = self.keys[id]
        reason = self.refusal(action)
        if reason is None and action.stops and self.grid.cursor.displaced:
            self.grid.cursor.displaced = False
            reason = "the row under the cursor has changed: look, and press again"
        if reason is not None:
            self.desk.say(f"{key_name(action)} {action.label}: {reason}", Tone.WARN)
            return
        handler = self.handlers().get(id) or self._common().get(id)
        if handler is not None:
            handler()
        else:
            self.desk.everywhere(id)
        self.bars()

    def _common(self) -> Mapping[str, Callable[[], None]]:
        return {
            "move.down": lambda: self.grid.move(1),
            "move.up": lambda: self.grid.move(-1),
            "move.top": lambda: self.grid.move_to(0),
            "move.end": lambda: self.grid.move_to(len(self.grid.table.rows) - 1),
            "move.page_down": lambda: self.grid.move(self.grid.page),
            "move.page_up": lambda: self.grid.move(-self.grid.page),
            "filter": self._open_filter,
            "holder": self._go_to_holder,
        }

    def _go_to_holder(self) -> None:
        holder = self.holder()
        if isinstance(holder, Place):
            self.desk.go(holder)
        else:
            self.desk.say(holder, Tone.WARN)

    def _open_filter(self) -> None:
        text = self.filter_text()
        self.query_one(FilterBar).open(text)
        self.type_filter(text)

    def on_grid_opened(self) -> None:
        self.action_do("open")

    def on_grid_moved(self, event: Grid.Moved) -> None:
        if self.alive:
            self.moved(event.grid)
            self.bars()

    def moved(self, grid: Grid) -> None:
        """The cursor of `grid` is on another row."""

    def on_lines_pressed(self, event: Lines.Pressed) -> None:
        self.action_do(event.action)

    def on_filter_bar_typed(self, event: FilterBar.Typed) -> None:
        self.type_filter(event.text)

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        self.apply_filter(event.text)

    def on_filter_bar_closed(self) -> None:
        self.close_filter()
        self.leave_filter()

    def hint(self, text: Line) -> None:
        """Told in place of the result while the filter is typed."""
        self._hint = text
        self.bars()

    def close_filter(self) -> None:
        self._hint = None
        self.query_one(FilterBar).close()
        self.focus_list()
        self.bars()
