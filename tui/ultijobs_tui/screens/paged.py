"""A list screen whose rows are read page by page: going over an end of the list turns the page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.screens.pages import Pages
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["PagedScreen"]


class PagedScreen(ListScreen):
    """Subclasses ask for the page behind `pages.after`."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = Pages()

    @abstractmethod
    def next_page(self) -> str | None:
        """What the following page comes behind; None on the last."""

    def shown(self) -> str:
        """What of the list is read, in which order."""
        return "newest first"

    def crumb(self) -> Line:
        more = " (pgdn next)" if self.next_page() else ""
        where = f"{self.shown()}   page {self.pages.number}{more} "
        return line(*super().crumb().left, right=(Span(where, Tone.MUTED),))

    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {**super().handlers(), "move.page_down": self._page_down, "move.page_up": self._page_up}

    def turn(self) -> None:
        """Another page is wanted."""
        self.frame = None
        self._list.forget()
        self.desk.poke()

    def _page_down(self) -> None:
        grid, following = self._list, self.next_page()
        if following is not None and (grid.cursor.index or 0) >= len(grid.table.rows) - 1:
            self.pages.forth(following)
            self.turn()
        else:
            grid.move(grid.page)

    def _page_up(self) -> None:
        grid = self._list
        if not (grid.cursor.index or 0) and self.pages.back():
            self.turn()
        else:
            grid.move(-grid.page)
