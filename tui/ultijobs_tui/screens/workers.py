"""Workers: which processes live, whether they make progress, and what each holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ultijobs.inspection import Action, Target, WorkerRow
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.finding import exactly
from ultijobs_tui.present.worker import worker_panel
from ultijobs_tui.present.workers import WORKER_SORTS, instance_of, worker_table, workers_summary
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table

__all__ = ["WorkersScreen"]


class WorkersScreen(ListScreen[WorkerRow]):
    VIEW = "workers"
    PANEL_ROWS = 8
    BINDINGS = bindings_of("workers")
    SORTS = WORKER_SORTS
    CLI = "ultijobs workers ls"
    NOUN = "worker"
    ROW_ACTIONS: ClassVar = frozenset({"open", "drain", "resume", "copy.id"})

    def needs(self) -> Needs:
        return Needs(workers=True, leases=True, leader=True)

    def key_of(self, wanted: str) -> str | None:
        """Links name a worker; a row is one process of it."""
        instance = instance_of((self.frame.workers if self.frame else None) or [], wanted)
        return None if instance is None else str(instance)

    def summary(self) -> list[str | Span]:
        return workers_summary(self.frame)

    def note(self, frame: Frame) -> None:
        if frame.workers is not None:
            self.desk.history.add_workers(frame.as_of, frame.workers)

    def table(self, frame: Frame) -> Table:
        return worker_table(frame, self.desk.history, self.desk.look(), sort=self.sort, find=self.find)

    def panel(self) -> list[Line]:
        return worker_panel(self.under(), self.frame, self.desk.look())

    def rows(self, frame: Frame) -> Sequence[WorkerRow] | None:
        return frame.workers

    def row_key(self, row: WorkerRow) -> str:
        return str(row.instance)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(self._leases),
            "drain": self.with_row(lambda worker: self._act(worker, Action.DRAIN_WORKER, "DRAIN")),
            "resume": self.with_row(lambda worker: self._act(worker, Action.RESUME_WORKER, "RESUME")),
            "copy.id": self.with_row(lambda worker: self.desk.copy(worker.worker_id)),
        }

    def unfit(self, action: KeyAction) -> str | None:
        worker = self.under()
        if worker is not None and action.id in {"drain", "resume"}:
            if worker.ended:
                return "this worker has drained and ended" if worker.stopped_at is not None else "this worker is gone"
            stopping = worker.state in {"draining", "drained"}
            if action.id == "resume" and not stopping:
                return "this worker was not drained"
            if action.id == "drain" and worker.state == "drained":
                return "this worker is drained: u lets it claim again"
        return super().unfit(action)

    def _leases(self, worker: WorkerRow) -> None:
        self.desk.go(Place("leases", where=exactly("worker", worker.worker_id)))

    def _act(self, worker: WorkerRow, action: Action, verb: str) -> None:
        self.desk.act(Intent(action, Target(worker=worker.worker_id), f"{verb} worker {worker.worker_id}"))
