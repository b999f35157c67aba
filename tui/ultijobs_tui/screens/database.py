"""Database: what holds the queue's own database back, and what to run by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.database import Fact, database_panel, database_summary, database_table, facts_of
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["DatabaseScreen"]


class DatabaseScreen(ListScreen[Fact]):
    VIEW = "database"
    PANEL_ROWS = 7
    BINDINGS = bindings_of("database")
    CLI = "ultijobs doctor"
    NOUN = "fact"

    def needs(self) -> Needs:
        return Needs(health=True)

    def summary(self) -> list[str | Span]:
        return database_summary(self.frame.health if self.frame else None, self.desk.look())

    def table(self, frame: Frame) -> Table:
        return database_table(frame, self.desk.look(), find=self.find)

    def panel(self) -> list[Line]:
        return database_panel(self.under(), self.desk.look())

    def rows(self, frame: Frame) -> Sequence[Fact] | None:
        return facts_of(frame.health, self.desk.look()) if frame.health else None

    def row_key(self, row: Fact) -> str:
        return row.key

    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(lambda fact: self.desk.page_text(f"{fact.what} {fact.who}", _whole(fact))),
            "copy.id": self.with_row(lambda fact: self.desk.copy(fact.statement)),
        }


def _whole(fact: Fact) -> str:
    parts = (f"{fact.value}   {fact.says}", fact.detail, f"by hand: {fact.statement}")
    return "\n\n".join(part for part in parts if part)
