"""Database: what holds the queue's own database back, and what to run by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.database import Fact, database_panel, database_summary, database_table, facts_of
from ultijobs_tui.screens.base import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["DatabaseScreen"]


class DatabaseScreen(ListScreen):
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

    def under(self) -> Fact | None:
        health = self.frame.health if self.frame else None
        facts = facts_of(health, self.desk.look()) if health else []
        return next((fact for fact in facts if fact.key == self._list.cursor.key), None)

    def handlers(self) -> Mapping[str, Callable[[], None]]:
        def on(do: Callable[[Fact], None]) -> Callable[[], None]:
            return lambda: None if (fact := self.under()) is None else do(fact)

        return {
            **super().handlers(),
            "open": on(lambda fact: self.desk.page_text(f"{fact.what} {fact.who}", _whole(fact))),
            "copy.id": on(lambda fact: self.desk.copy(fact.statement)),
        }


def _whole(fact: Fact) -> str:
    parts = (f"{fact.value}   {fact.says}", fact.detail, f"by hand: {fact.statement}")
    return "\n\n".join(part for part in parts if part)
