"""A screen of one list: words narrow it, orders turn it over, a panel tells of the row under the cursor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.widget import Widget

from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Place
from ultijobs_tui.frame import Frame
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.table import Line, Span, Table, Tone, line
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["ListScreen"]

R = TypeVar("R")


class ListScreen(CockpitScreen, Generic[R]):
    """Subclasses read a frame: its rows, their table and summary; and act on the row under the cursor."""

    PANEL_ROWS = 8
    SORTS: ClassVar[tuple[str, ...]] = ()
    """The orders by name, the first one when the screen opens."""
    CLI: ClassVar[str]
    """The command that lists the same."""
    ROW_ACTIONS: ClassVar[frozenset[str]] = frozenset({"open", "copy.id"})
    """What needs a row under the cursor."""
    NOUN: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.find = ""
        self.sort = self.SORTS[0] if self.SORTS else ""
        self.frame: Frame | None = None
        self._wanted: str | None = None

    # -- for subclasses --------------------------------------------------------------------------------
    @abstractmethod
    def table(self, frame: Frame) -> Table: ...

    @abstractmethod
    def panel(self) -> list[Line]:
        """What there is to know about the row under the cursor."""

    @abstractmethod
    def summary(self) -> list[str | Span]:
        """The list in a few words."""

    @abstractmethod
    def rows(self, frame: Frame) -> Sequence[R] | None:
        """What the frame holds to list; None when that could not be read."""

    @abstractmethod
    def row_key(self, row: R) -> str:
        """What tells a row from every other, in each frame."""

    def note(self, frame: Frame) -> None:
        """A frame came that was not there before."""

    def key_of(self, wanted: str) -> str | None:
        """The row that a link means."""
        return wanted

    # -- showing ---------------------------------------------------------------------------------------
    def body(self) -> Iterable[Widget]:
        yield Grid(id=self.VIEW, classes="grows")
        yield Lines(id="panel", classes="panel roomy")
        yield Lines(classes="filler")

    def crumb(self) -> Line:
        parts: list[str | Span] = [" ", *self.summary()]
        if self.find:
            esc = "  esc back" if self.desk.leads_up else "  esc all"
            parts += ["   ", Span("find ", Tone.MUTED), Span(self.find, Tone.ACCENT), Span(esc, Tone.MUTED)]
        return line(*parts, right=(Span(f"sorted by {self.sort} ", Tone.MUTED),) if self.SORTS else ())

    def show(self, frame: Frame) -> None:
        if frame is not self.frame:
            self.note(frame)
        self.frame = frame
        grid = self._list
        grid.set_table(self.table(frame))
        if self._wanted is not None and grid.go(self.key_of(self._wanted) or ""):
            self._wanted = None
        self._panel()

    @property
    def _list(self) -> Grid:
        return self.query(Grid).first()

    def under(self) -> R | None:
        """The row under the cursor."""
        key = self._list.cursor.key
        rows = (self.rows(self.frame) if self.frame else None) or ()
        return next((row for row in rows if self.row_key(row) == key), None)

    def with_row(self, do: Callable[[R], None]) -> Callable[[], None]:
        """What a key does with the row under the cursor; without one it does nothing."""
        return lambda: None if (row := self.under()) is None else do(row)

    def moved(self, grid: Grid) -> None:  # noqa: ARG002 - there is one
        self._panel()

    def _panel(self) -> None:
        self.query_one("#panel", Lines).set_lines(self.panel())

    def again(self) -> None:
        """Shows what is known once more: how it is shown has changed."""
        if self.frame is not None:
            self.show(self.frame)

    def arrive(self, place: Place) -> None:
        self._wanted = place.key
        if place.where is not None:
            self.type_filter(place.where)
        else:
            self.again()

    def place(self) -> Place:
        return Place(self.VIEW, where=self.find, key=self._list.cursor.key)

    # -- filter and order ------------------------------------------------------------------------------
    def filter_text(self) -> str:
        return self.find

    def type_filter(self, text: str) -> None:
        self.find = text.strip()
        self.again()

    def apply_filter(self, text: str) -> None:
        self.type_filter(text)
        self.close_filter()

    def leave_filter(self) -> None:
        self.type_filter("")

    def on_grid_sort_asked(self, event: Grid.SortAsked) -> None:
        self._sort(event.sort)

    def _next_sort(self) -> None:
        self._sort(self.SORTS[(self.SORTS.index(self.sort) + 1) % len(self.SORTS)])

    def _sort(self, sort: str) -> None:
        self.sort = sort
        self.again()
        self.bars()

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            "back": self.go_up,
            "sort": self._next_sort,
            "copy.cli": lambda: self.desk.copy(self.CLI),
        }

    def unfit(self, action: KeyAction) -> str | None:
        if action.id in self.ROW_ACTIONS and self.under() is None:
            return f"no {self.NOUN} is under the cursor"
        return None
