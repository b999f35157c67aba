"""Activity: what operators did, from every surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final
from uuid import UUID

from ultijobs.inspection import ActivityRow
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.frame import ActivityAsk, Frame, Needs
from ultijobs_tui.present.activity import activity_panel, activity_summary, activity_table, activity_text
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.paged import PagedScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["ActivityScreen"]

_PAGE: Final = 100


class ActivityScreen(PagedScreen[ActivityRow]):
    VIEW = "activity"
    PANEL_ROWS = 9
    BINDINGS = bindings_of("activity")
    CLI = "ultijobs activity"
    NOUN = "act"
    ROW_ACTIONS: ClassVar = frozenset({"open", "copy.id", "copy.cli"})

    def needs(self) -> Needs:
        after = self.pages.after
        return Needs(activity=ActivityAsk(UUID(after) if after else None, _PAGE))

    def next_page(self) -> str | None:
        rows = (self.frame.activity if self.frame else None) or []
        return str(rows[-1].id) if len(rows) == _PAGE else None

    def summary(self) -> list[str | Span]:
        return activity_summary(self.frame.activity if self.frame else None)

    def table(self, frame: Frame) -> Table:
        return activity_table(frame, self.desk.look(), find=self.find)

    def panel(self) -> list[Line]:
        look = self.desk.look()
        return activity_panel(self.under(), look, look.width)

    def rows(self, frame: Frame) -> Sequence[ActivityRow] | None:
        return frame.activity

    def row_key(self, row: ActivityRow) -> str:
        return str(row.id)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(self._open),
            "copy.id": self.with_row(lambda row: self.desk.copy(str(row.id))),
            "copy.cli": self.with_row(lambda row: self.desk.copy(row.equivalent or self.CLI)),
        }

    def unfit(self, action: KeyAction) -> str | None:
        row = self.under()
        if action.id == "copy.cli" and row is not None and row.equivalent is None:
            return "no command does the same"
        return super().unfit(action)

    def _open(self, row: ActivityRow) -> None:
        self.desk.page_text(f"{row.action} by {row.actor}", activity_text(row))
