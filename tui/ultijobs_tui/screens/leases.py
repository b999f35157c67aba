"""Leases: what runs now, where, and for how long it is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ultijobs.inspection import Action, LeaseRow
from ultijobs_tui import format as fmt
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.leases import LEASE_SORTS, lease_panel, lease_table, leases_summary
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["LeasesScreen"]


class LeasesScreen(ListScreen[LeaseRow]):
    VIEW = "leases"
    PANEL_ROWS = 5
    BINDINGS = bindings_of("leases")
    SORTS = LEASE_SORTS
    CLI = "ultijobs leases"
    NOUN = "job"
    ROW_ACTIONS: ClassVar = frozenset({"open", "cancel", "holder", "why", "copy.id"})

    def needs(self) -> Needs:
        return Needs(leases=True, workers=True)

    def summary(self) -> list[str | Span]:
        return leases_summary(self.frame)

    def table(self, frame: Frame) -> Table:
        return lease_table(frame, self.desk.look(), sort=self.sort, find=self.find)

    def panel(self) -> list[Line]:
        return lease_panel(self.under(), self.frame, self.desk.look())

    def rows(self, frame: Frame) -> Sequence[LeaseRow] | None:
        return frame.leases

    def row_key(self, row: LeaseRow) -> str:
        return str(row.id)

    def tenant_here(self) -> str | None:
        lease = self.under()
        return lease.tenant_id if lease else None

    def holder(self) -> Place | str:
        lease = self.under()
        return super().holder() if lease is None else Place("workers", key=lease.worker_id)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(lambda lease: self.desk.go(Place("run", job=lease.id))),
            "cancel": self.with_row(self._cancel),
            "why": self.with_row(lambda lease: self.desk.show_why(lease.id)),
            "copy.id": self.with_row(lambda lease: self.desk.copy(str(lease.id))),
        }

    def _cancel(self, lease: LeaseRow) -> None:
        self.desk.act(Intent(Action.CANCEL, (lease.id,), f"CANCEL {lease.name} {fmt.short_id(lease.id)}"))
