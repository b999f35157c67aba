"""Outbox: rows on their way into the queue, and what was set aside on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from textual.widget import Widget

from ultijobs.inspection import Action, OutboxRow, OutboxState
from ultijobs_tui import format as fmt
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs, OutboxAsk
from ultijobs_tui.present.outbox import (
    OUTBOX_STATES,
    blocker_line,
    outbox_panel,
    outbox_summary,
    outbox_table,
    outbox_text,
)
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.paged import PagedScreen
from ultijobs_tui.table import Line, Span, Table
from ultijobs_tui.widgets.lines import Lines

__all__ = ["OutboxScreen"]

_PAGE: Final = 100


class OutboxScreen(PagedScreen[OutboxRow]):
    VIEW = "outbox"
    PANEL_ROWS = 4
    HEAD_ROWS = 1
    BINDINGS = bindings_of("outbox")
    NOUN = "row"
    ROW_ACTIONS: ClassVar = frozenset({"open", "retry", "copy.id"})

    def __init__(self) -> None:
        super().__init__()
        self._state: OutboxState | None = None

    def needs(self) -> Needs:
        return Needs(outbox=OutboxAsk(self._state, self.pages.after, _PAGE), health=True)

    def next_page(self) -> str | None:
        page = self.frame.outbox if self.frame else None
        return page.next if page else None

    def body(self) -> Iterable[Widget]:
        yield Lines(id="blocker", classes="rule")
        yield from super().body()

    def shown(self) -> str:
        return f"{self._state or 'every state'}, newest first"

    def summary(self) -> list[str | Span]:
        return outbox_summary(self.frame, self.desk.look())

    def show(self, frame: Frame) -> None:
        super().show(frame)
        self.query_one("#blocker", Lines).set_lines([blocker_line(frame, self.desk.look())])

    def table(self, frame: Frame) -> Table:
        return outbox_table(frame, self.desk.look(), find=self.find)

    def panel(self) -> list[Line]:
        return outbox_panel(self.under(), self.desk.look())

    def rows(self, frame: Frame) -> Sequence[OutboxRow] | None:
        return frame.outbox.rows if frame.outbox else None

    def row_key(self, row: OutboxRow) -> str:
        return str(row.id)

    def tenant_here(self) -> str | None:
        row = self.under()
        return row.tenant_id if row else None

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(self._open),
            "states": self._next_state,
            "retry": self.with_row(self._retry),
            "copy.id": self.with_row(lambda row: self.desk.copy(str(row.id))),
            "copy.cli": lambda: self.desk.copy(f"ultijobs outbox ls{f' --state {self._state}' if self._state else ''}"),
        }

    def unfit(self, action: KeyAction) -> str | None:
        row = self.under()
        if action.id == "retry" and row is not None and row.state is not OutboxState.SET_ASIDE:
            return f"only what was set aside can be staged again; this is {row.state}"
        return super().unfit(action)

    def _next_state(self) -> None:
        self._state = OUTBOX_STATES[(OUTBOX_STATES.index(self._state) + 1) % len(OUTBOX_STATES)]
        self.restart()

    def _open(self, row: OutboxRow) -> None:
        if row.job_id is not None:
            self.desk.go(Place("run", job=row.job_id))
        else:
            self.desk.page_text(f"Outbox row {fmt.short_id(row.id)}", outbox_text(row))

    def _retry(self, row: OutboxRow) -> None:
        self.desk.act(Intent(Action.OUTBOX_RETRY, (row.id,), f"STAGE AGAIN {row.name} {fmt.short_id(row.id)}"))
