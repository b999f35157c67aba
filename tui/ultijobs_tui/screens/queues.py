"""Queues: who is paused, who falls behind, who has no worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from ultijobs.inspection import Action, Field, PlanOptions, QueueRow, Tally, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs, TallyAsk
from ultijobs_tui.present.filters import quoted
from ultijobs_tui.present.finding import exactly
from ultijobs_tui.present.fitting import unfit_for_state
from ultijobs_tui.present.queues import QUEUE_SORTS, queue_panel, queue_table
from ultijobs_tui.present.tallies import narrowed, tally_key, tally_table
from ultijobs_tui.screens.ask import AskDialog
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table, Tone, line

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["QueuesScreen"]

_LIVE = "state:ready,delayed,running,suspended"
_KEPT = f"{_LIVE},dead,failed"
"""What still is somebody's business; an operator who asks for history as well takes the word away."""


class QueuesScreen(ListScreen[QueueRow | Tally]):
    VIEW = "queues"
    PANEL_ROWS = 4
    BINDINGS = bindings_of("queues")

    CLI = "ultijobs queues ls"
    SORTS = QUEUE_SORTS
    NOUN = "queue"
    ROW_ACTIONS: ClassVar = frozenset({"open", "dead_of_queue", "pause", "resume", "move", "copy.id"})

    def __init__(self) -> None:
        super().__init__()
        self._by_tenant = False

    def needs(self) -> Needs:
        return Needs(tally=TallyAsk(_LIVE, Field.TENANT)) if self._by_tenant else Needs(queues=True)

    def arrive(self, place: Place) -> None:
        if place.key is not None and self._by_tenant:
            self._group()
        super().arrive(place)

    def place(self) -> Place:
        return Place("queues", where=self.find, key=None if self._by_tenant else self._list.cursor.key)

    def tenant_here(self) -> str | None:
        one = self._tenant()
        return one.value if one else None

    def holder(self) -> Place | str:
        queue = self._queue()
        return super().holder() if queue is None else Place("workers", where=exactly("queue", queue.queue))

    def summary(self) -> list[str | Span]:
        rows = self.frame.queues if self.frame else None
        return [] if rows is None else [f"{len(rows)} queue{'' if len(rows) == 1 else 's'}"]

    def crumb(self) -> Line:
        if self._by_tenant:
            return line(" what waits and runs, by tenant   ", Span(self.keys.name("group"), Tone.KEY), " by queue")
        return super().crumb()

    # -- showing ---------------------------------------------------------------------------------------
    def note(self, frame: Frame) -> None:
        if frame.queues is not None:
            self.desk.history.add_queues(frame.as_of, frame.queues)

    def table(self, frame: Frame) -> Table:
        if self._by_tenant:
            return tally_table(frame, Field.TENANT, self.desk.look(), stopped=False, find=self.find)
        return queue_table(frame, self.desk.history, self.desk.look(), sort=self.sort, find=self.find)

    def panel(self) -> list[Line]:
        return queue_panel(self._queue(), self.desk.look())

    def rows(self, frame: Frame) -> Sequence[QueueRow | Tally] | None:
        return frame.tally if self._by_tenant else frame.queues

    def row_key(self, row: QueueRow | Tally) -> str:
        return row.queue if isinstance(row, QueueRow) else tally_key(row)

    def _queue(self) -> QueueRow | None:
        row = self.under()
        return row if isinstance(row, QueueRow) else None

    def _tenant(self) -> Tally | None:
        row = self.under()
        return row if isinstance(row, Tally) else None

    def _group(self) -> None:
        self._by_tenant = not self._by_tenant
        self.frame = None
        self._list.forget()
        self.receive(Frame(self.needs(), self.desk.look().now))
        self.desk.poke()

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": lambda: self._jobs_of("jobs", f"{_KEPT} queue:{{}}"),
            "group": self._group,
            "dead_of_queue": lambda: self._jobs_of("dead", "state:dead,failed queue:{}"),
            "pause": lambda: self._act(Action.PAUSE),
            "resume": lambda: self._act(Action.RESUME),
            "move": self._ask_where,
            "copy.id": self._copy,
        }

    def unfit(self, action: KeyAction) -> str | None:
        if self._by_tenant:
            return self._unfit_tenant(action)
        queue = self._queue()
        if queue is not None and action.id in {"pause", "resume"}:
            return unfit_for_state(action.id, queue.state)
        return super().unfit(action)

    def _unfit_tenant(self, action: KeyAction) -> str | None:
        if action.id in {"dead_of_queue", "pause", "resume", "move", "sort"}:
            return "this list is by tenant: v shows queues"
        if action.id in {"open", "copy.id"} and (self._tenant() is None or self.tenant_here() is None):
            return "no tenant is under the cursor"
        return None

    def _jobs_of(self, view: str, where: str) -> None:
        queue, tenant = self._queue(), self._tenant()
        if tenant is not None:
            self.desk.go(Place("jobs", where=narrowed(_LIVE, Field.TENANT, tenant)))
        elif queue is not None:
            self.desk.go(Place(view, where=where.format(quoted(queue.queue))))

    def _act(self, action: Action) -> None:
        queue = self._queue()
        if queue is not None:
            self.desk.act(Intent(action, Target(queue=queue.queue), f"{action.upper()} queue {queue.queue}"))

    def _ask_where(self) -> None:
        queue = self._queue()
        if queue is None:
            return
        name = queue.queue

        def move(to: str | None) -> None:
            if to is not None:
                title = f"DRAIN queue {name} to another database"
                self.desk.act(Intent(Action.DRAIN_QUEUE, Target(queue=name), title, PlanOptions(to=to)))

        ask = AskDialog(f"DRAIN queue {name}", "to", "the address of a migrated database; a plan comes first")
        cast("App[object]", self.app).push_screen(ask, move)

    def _copy(self) -> None:
        queue, tenant = self._queue(), self.tenant_here()
        if tenant is not None:
            self.desk.copy(tenant)
        elif queue is not None:
            self.desk.copy(queue.queue)
