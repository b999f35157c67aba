"""Backfills: passes over what is stored already, how far they are, and what stopped them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from ultijobs.inspection import Action, BackfillRow, BackfillState, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.backfills import (
    BACKFILL_SORTS,
    STALLED,
    backfill_panel,
    backfill_table,
    backfills_summary,
)
from ultijobs_tui.present.fitting import unfit_for_queue
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["BackfillsScreen", "unfit_backfill"]

_STOPPED: Final = frozenset({BackfillState.FAILED, BackfillState.CANCELLED})
_QUEUED: Final = frozenset({"pause", "resume"})


class BackfillsScreen(ListScreen[BackfillRow]):
    VIEW = "backfills"
    PANEL_ROWS = 5
    BINDINGS = bindings_of("backfills")
    SORTS = BACKFILL_SORTS
    CLI = "ultijobs backfill --list"
    NOUN = "backfill"
    ROW_ACTIONS: ClassVar = frozenset({"open", "start", "force", "cancel", "retry", "copy.id", "copy.cli"}) | _QUEUED

    def needs(self) -> Needs:
        return Needs(backfills=True)

    def note(self, frame: Frame) -> None:
        live = [row for row in frame.backfills or () if row.state is BackfillState.RUNNING]
        self.desk.history.add_passes(frame.as_of, {row.run_id: row.rows for row in live if row.run_id is not None})

    def summary(self) -> list[str | Span]:
        return backfills_summary(self.frame)

    def table(self, frame: Frame) -> Table:
        return backfill_table(frame, self.desk.look(), sort=self.sort, find=self.find)

    def panel(self) -> list[Line]:
        return backfill_panel(self.under(), self.desk.history, self.desk.look())

    def rows(self, frame: Frame) -> Sequence[BackfillRow] | None:
        return frame.backfills

    def row_key(self, row: BackfillRow) -> str:
        return row.name

    def tenant_here(self) -> str | None:
        row = self.under()
        return row.tenant if row else None

    def holder(self) -> Place | str:
        row = self.under()
        if row is None or row.queue is None:
            return super().holder()
        return Place("queues", key=row.queue)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(lambda row: self.desk.go(Place("run", job=row.job_id))),
            "start": self.with_row(lambda row: self._pass(row, Action.START_BACKFILL, "START")),
            "force": self.with_row(lambda row: self._pass(row, Action.FORCE_BACKFILL, "FORCE a new pass of")),
            "cancel": self.with_row(lambda row: self._job(row, Action.CANCEL, "CANCEL the pass of")),
            "retry": self.with_row(lambda row: self._job(row, Action.RETRY, "GO ON with the pass of")),
            "pause": self.with_row(lambda row: self._queue(row, Action.PAUSE)),
            "resume": self.with_row(lambda row: self._queue(row, Action.RESUME)),
            "copy.id": self.with_row(lambda row: self.desk.copy(row.name)),
            "copy.cli": self.with_row(lambda row: self.desk.copy(f"ultijobs backfill {row.name}")),
        }

    def unfit(self, action: KeyAction) -> str | None:
        row = self.under()
        if row is None:
            return super().unfit(action)
        return unfit_backfill(action.id, row) or self._unfit_queue(action, row)

    def _unfit_queue(self, action: KeyAction, row: BackfillRow) -> str | None:
        if action.id not in _QUEUED or self.frame is None:
            return None
        return unfit_for_queue(action.id, row.queue, self.frame.overview)

    def _pass(self, row: BackfillRow, action: Action, verb: str) -> None:
        self.desk.act(Intent(action, Target(backfill=row.name), f"{verb} backfill {row.name}"))

    def _job(self, row: BackfillRow, action: Action, verb: str) -> None:
        if row.job_id is not None:
            self.desk.act(Intent(action, (row.job_id,), f"{verb} backfill {row.name}"))

    def _queue(self, row: BackfillRow, action: Action) -> None:
        if row.queue is not None:
            self.desk.act(Intent(action, Target(queue=row.queue), f"{action.upper()} queue {row.queue}"))


def unfit_backfill(action: str, row: BackfillRow) -> str | None:  # noqa: PLR0911 - one line per reason
    """Why an act on a backfill, or on its newest pass, would be refused as it stands."""
    if action in _QUEUED and row.queue is None:
        return "its queue is not known"
    if action in {"start", "force"}:
        return _unfit_pass(action, row)
    if action == "cancel" and row.state is not BackfillState.RUNNING:
        return f"no pass of it is live; it is {row.state}"
    if action == "retry" and row.state not in _STOPPED:
        return f"only a pass that has stopped can go on; this is {row.state}"
    if action == "retry" and row.error_code == STALLED:
        return "its source and its count() disagree: going on cannot fix that"
    if action in {"open", "cancel", "retry"} and row.job_id is None:
        return "no pass of it is known"
    if action == "retry" and row.job_state is None:
        return "the job of its last pass is not kept any more: b starts a new one"
    return None


def _unfit_pass(action: str, row: BackfillRow) -> str | None:
    if not row.declared:
        return "the application does not declare it any more"
    if row.state is BackfillState.RUNNING:
        return "a pass of it is live already"
    if row.state is BackfillState.EXCLUDED:
        return f"it belongs to {', '.join(row.environments)}; here is {row.environment or 'no environment'}"
    if action == "start" and row.state is BackfillState.COMPLETED:
        return "it has completed: F forces a new pass"
    return None
