"""Lists that are read page by page: going over an end of the list turns the page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.screens.pages import Pages
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["PagedScreen", "Turning"]

R = TypeVar("R")


class Turning(CockpitScreen):
    """Subclasses ask for the page behind `pages.after`."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = Pages()

    @abstractmethod
    def next_page(self) -> str | None:
        """What the following page comes behind; None on the last."""

    @abstractmethod
    def forget_page(self) -> None:
        """Drops the rows that are shown: another page is wanted."""

    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {**super().handlers(), "move.page_down": self._page_down, "move.page_up": self._page_up}

    def turn(self) -> None:
        self.forget_page()
        self.grid.forget()
        self.desk.poke()

    def restart(self) -> None:
        """From the first page: what is listed, or in which order, has changed."""
        self.pages.restart()
        self.turn()

    def _page_down(self) -> None:
        grid, following = self.grid, self.next_page()
        if following is not None and (grid.cursor.index or 0) >= len(grid.table.rows) - 1:
            self.pages.forth(following)
            self.turn()
        else:
            grid.move(grid.page)

    def _page_up(self) -> None:
        grid = self.grid
        if not (grid.cursor.index or 0) and self.pages.back():
            self.turn()
        else:
            grid.move(-grid.page)


class PagedScreen(Turning, ListScreen[R]):
    """A screen of one list that turns its pages."""

    def shown(self) -> str:
        """What of the list is read, in which order."""
        return "newest first"

    def forget_page(self) -> None:
        self.frame = None

    def crumb(self) -> Line:
        more = " (pgdn next)" if self.next_page() else ""
        where = f"{self.shown()}   page {self.pages.number}{more} "
        return line(*super().crumb().left, right=(Span(where, Tone.MUTED),))
