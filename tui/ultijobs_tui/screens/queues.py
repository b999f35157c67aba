"""Queues: who is paused, who falls behind, who has no worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from textual.widget import Widget

from ultijobs.inspection import Action, Field, PlanOptions, QueueRow, Tally, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs, TallyAsk
from ultijobs_tui.present.filters import quoted
from ultijobs_tui.present.finding import exactly
from ultijobs_tui.present.queues import QUEUE_SORTS, queue_panel, queue_table
from ultijobs_tui.present.tallies import narrowed, tally_key, tally_table
from ultijobs_tui.screens.ask import AskDialog
from ultijobs_tui.screens.base import CockpitScreen, bindings_of
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["QueuesScreen"]

_LIVE = "state:ready,delayed,running,suspended"


class QueuesScreen(CockpitScreen):
    VIEW = "queues"
    PANEL_ROWS = 4
    BINDINGS = bindings_of("queues")

    def __init__(self) -> None:
        super().__init__()
        self._find = ""
        self._sort = QUEUE_SORTS[0]
        self._frame: Frame | None = None
        self._wanted: str | None = None
        self._by_tenant = False

    def needs(self) -> Needs:
        return Needs(tally=TallyAsk(_LIVE, Field.TENANT)) if self._by_tenant else Needs(queues=True)

    def body(self) -> Iterable[Widget]:
        yield Grid(id="queues", classes="grows")
        yield Lines(id="panel", classes="panel roomy")
        yield Lines(classes="filler")

    def arrive(self, place: Place) -> None:
        self._wanted = place.key
        if place.key is not None and self._by_tenant:
            self._group()

    def place(self) -> Place:
        return Place("queues", key=None if self._by_tenant else self.query_one(Grid).cursor.key)

    def tenant_here(self) -> str | None:
        one = self._tenant()
        return one.value if one else None

    def holder(self) -> Place | str:
        queue = self._queue()
        return super().holder() if queue is None else Place("workers", where=exactly("queue", queue.queue))

    def crumb(self) -> Line:
        rows = self._frame.queues if self._frame else None
        count = "" if rows is None else f"{len(rows)} queue{'' if len(rows) == 1 else 's'} "
        if self._by_tenant:
            return line(" what waits and runs, by tenant   ", Span(self.keys.name("group"), Tone.KEY), " by queue")
        found: list[str | Span] = (
            [Span("find ", Tone.MUTED), Span(self._find, Tone.ACCENT), "   "] if self._find else []
        )
        return line(" ", *found, Span("sorted by ", Tone.MUTED), self._sort, right=(Span(count, Tone.MUTED),))

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        if frame is not self._frame and frame.queues is not None:
            self.desk.history.add_queues(frame.as_of, frame.queues)
        self._frame = frame
        grid = self.query_one(Grid)
        if self._by_tenant:
            grid.set_table(tally_table(frame, Field.TENANT, self.desk.look(), stopped=False, find=self._find))
            self._panel()
            return
        grid.set_table(queue_table(frame, self.desk.history, self.desk.look(), sort=self._sort, find=self._find))
        if self._wanted is not None and grid.go(self._wanted):
            self._wanted = None
        self._panel()

    def moved(self, grid: Grid) -> None:  # noqa: ARG002 - there is one
        self._panel()

    def _panel(self) -> None:
        self.query_one("#panel", Lines).set_lines(queue_panel(self._queue(), self.desk.look()))

    def _queue(self) -> QueueRow | None:
        key = self.query_one(Grid).cursor.key
        rows = (self._frame.queues if self._frame else None) or []
        return next((q for q in rows if q.queue == key), None)

    def _tenant(self) -> Tally | None:
        key = self.query_one(Grid).cursor.key
        rows = (self._frame.tally if self._frame else None) or []
        return next((one for one in rows if tally_key(one) == key), None) if self._by_tenant else None

    def _group(self) -> None:
        self._by_tenant = not self._by_tenant
        self._frame = None
        self.query_one(Grid).forget()
        self.receive(Frame(self.needs(), self.desk.look().now))
        self.desk.poke()

    def _again(self) -> None:
        if self._frame is not None:
            self.show(self._frame)

    # -- filter ----------------------------------------------------------------------------------------
    def filter_text(self) -> str:
        return self._find

    def type_filter(self, text: str) -> None:
        self._find = text.strip()
        self._again()

    def apply_filter(self, text: str) -> None:
        self.type_filter(text)
        self.close_filter()

    def leave_filter(self) -> None:
        self.type_filter("")

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            "open": lambda: self._list("jobs", "queue:{}"),
            "group": self._group,
            "dead_of_queue": lambda: self._list("dead", "state:dead,failed queue:{}"),
            "back": self.leave_filter,
            "pause": lambda: self._act(Action.PAUSE),
            "resume": lambda: self._act(Action.RESUME),
            "move": self._ask_where,
            "sort": self._next_sort,
            "copy.id": self._copy,
            "copy.cli": lambda: self.desk.copy("ultijobs queues ls"),
        }

    def unfit(self, action: KeyAction) -> str | None:
        if self._by_tenant:
            return self._unfit_tenant(action)
        if action.id not in {"open", "dead_of_queue", "pause", "resume", "move", "copy.id"}:
            return None
        queue = self._queue()
        if queue is None:
            return "no queue is under the cursor"
        if action.id == "pause" and queue.state == "paused":
            return "this queue is paused already"
        if action.id == "resume" and queue.state != "paused":
            return "this queue is not paused"
        return None

    def _unfit_tenant(self, action: KeyAction) -> str | None:
        if action.id in {"dead_of_queue", "pause", "resume", "move", "sort"}:
            return "this list is by tenant: v shows queues"
        if action.id in {"open", "copy.id"} and (self._tenant() is None or self.tenant_here() is None):
            return "no tenant is under the cursor"
        return None

    def on_grid_sort_asked(self, event: Grid.SortAsked) -> None:
        self._sort = event.sort
        self._again()
        self.bars()

    def _next_sort(self) -> None:
        self._sort = QUEUE_SORTS[(QUEUE_SORTS.index(self._sort) + 1) % len(QUEUE_SORTS)]
        self._again()

    def _list(self, view: str, where: str) -> None:
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
