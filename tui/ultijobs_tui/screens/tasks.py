"""Tasks: the schedule above, the ledger of the task under the cursor below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from textual.widget import Widget

from ultijobs.inspection import Action, Slot, Target, TaskRow
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.tasks import TASK_SORTS, slot_key, slot_table, task_panel, task_table, tasks_summary
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table, rule
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["TasksScreen"]


class TasksScreen(ListScreen[TaskRow]):
    VIEW = "tasks"
    BINDINGS = bindings_of("tasks")
    SORTS = TASK_SORTS
    CLI = "ultijobs tasks ls"
    NOUN = "task"
    ROW_ACTIONS: ClassVar = frozenset({"open", "run_task", "upcoming", "copy.id", "copy.cli"})

    def __init__(self) -> None:
        super().__init__()
        self._slots: list[Slot] | None = None
        self._slots_of: str | None = None

    def needs(self) -> Needs:
        return Needs(tasks=True, slots=self._list.cursor.key if self.alive else None, leader=True)

    def body(self) -> Iterable[Widget]:
        yield Grid(id="tasks")
        yield Lines(id="panel", classes="panel roomy")
        yield Lines(id="slots-rule", classes="rule")
        yield Grid(id="slots")

    @property
    def _ledger(self) -> Grid:
        return self.query_one("#slots", Grid)

    @property
    def _on_slots(self) -> bool:
        return self.focused is self._ledger

    def summary(self) -> list[str | Span]:
        return tasks_summary(self.frame)

    def table(self, frame: Frame) -> Table:
        return task_table(frame, self.desk.look(), sort=self.sort, find=self.find)

    def panel(self) -> list[Line]:
        return task_panel(self.under(), self.frame, self.desk.look())

    def rows(self, frame: Frame) -> Sequence[TaskRow] | None:
        return frame.tasks

    def row_key(self, row: TaskRow) -> str:
        return row.name

    def _slot(self) -> Slot | None:
        key = self._ledger.cursor.key
        return next((slot for slot in self._slots or () if slot_key(slot) == key), None)

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        asked = frame.needs.slots
        super().show(frame)
        if frame.slots is not None or "slots" in frame.failures:
            self._slots, self._slots_of = frame.slots, asked
        self._show_slots()
        if self._list.cursor.key != asked:
            self.desk.poke()

    def receive(self, frame: Frame | None) -> None:
        """An answer for the task that was under the cursor before still has the tasks."""
        super().receive(frame)
        if frame is not None and self.alive and not frame.answers(self.needs()) and frame.tasks is not None:
            self.show(frame)

    def moved(self, grid: Grid) -> None:
        super().moved(grid)
        if grid is self._list:
            self._ledger.forget()
            self._show_slots()
            self.desk.poke()

    def _show_slots(self) -> None:
        task = self._list.cursor.key
        known = self._slots if task is not None and task == self._slots_of else None
        failure = self.frame.failures.get("slots") if self.frame else None
        table = slot_table(known, failure, self.desk.look()) if task is not None else Table((), ())
        self._ledger.set_table(table)
        said = "" if known is None else f"latest {len(known)}"
        self.query_one("#slots-rule", Lines).set_lines([rule(f"ledger of {task}" if task else "", said)])

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self._open,
            "back": self._back,
            "move.pane": self._other_pane,
            "run_task": self.with_row(self._run),
            "upcoming": self.with_row(lambda task: self.desk.show_upcoming(task.name)),
            "copy.id": self.with_row(lambda task: self.desk.copy(task.name)),
            "copy.cli": self.with_row(lambda task: self.desk.copy(f"ultijobs tasks show {task.name}")),
        }

    def unfit(self, action: KeyAction) -> str | None:
        if action.id == "run_task" and not self.desk.source.runs_tasks:
            return "its code says which jobs these are: start with ultijobs tui --app MODULE:NAME"
        if action.id == "open" and self._on_slots:
            slot = self._slot()
            return "no occurrence is under the cursor" if slot is None else None if slot.job_ids else "it has no job"
        return super().unfit(action)

    def _open(self) -> None:
        slot = self._slot()
        if not self._on_slots:
            self._ledger.focus()
        elif slot is not None and len(slot.job_ids) == 1:
            self.desk.go(Place("run", job=slot.job_ids[0]))
        elif slot is not None:
            self.desk.go(Place("jobs", where="id:" + ",".join(job.hex for job in slot.job_ids[:50])))

    def _back(self) -> None:
        if self._on_slots:
            self._list.focus()
        else:
            self.go_up()

    def _other_pane(self) -> None:
        (self._list if self._on_slots else self._ledger).focus()

    def _run(self, task: TaskRow) -> None:
        self.desk.act(Intent(Action.RUN_TASK, Target(task=task.name), f"RUN task {task.name} now"))
