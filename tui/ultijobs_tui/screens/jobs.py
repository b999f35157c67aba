"""Jobs: a filter, page by page, with marks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from textual.widget import Widget

from ultijobs.errors import FilterInvalid
from ultijobs.inspection import Action, ActOutcome, JobRow, Plan, Sort, parse_where
from ultijobs_tui import format as fmt
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs, PageAsk
from ultijobs_tui.present.filters import GRAMMAR, empty_jobs, filter_error
from ultijobs_tui.present.holder import holder_of
from ultijobs_tui.present.jobs import SORT_WORDS, job_table
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.marks import Marks
from ultijobs_tui.screens.paged import Turning
from ultijobs_tui.strangers import strangers
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.grid import Grid

__all__ = ["JobsScreen"]

_PAGE = 200


class JobsScreen(Turning):
    VIEW = "jobs"
    BINDINGS = bindings_of("jobs")

    def __init__(self) -> None:
        super().__init__()
        self._where = ""
        self._sort = Sort.NEWEST
        self._frame: Frame | None = None
        self._before: list[JobRow] = []
        self._wanted: str | None = None
        self._strangers: tuple[str, ...] | None = None
        """Of the filter as it is; None before they were looked for."""
        self.marks = Marks()

    def needs(self) -> Needs:
        return Needs(page=PageAsk(self._where, self._sort, self.pages.after, _PAGE))

    def next_page(self) -> str | None:
        page = self._frame.page if self._frame else None
        return page.next if page else None

    def forget_page(self) -> None:
        self._before = []

    def body(self) -> Iterable[Widget]:
        yield Grid(id="jobs")

    def arrive(self, place: Place) -> None:
        if place.where is not None:
            self._list(place.where)
        if place.key is not None and not self.query_one(Grid).go(place.key):
            self._wanted = place.key

    def place(self) -> Place:
        return Place("jobs", where=self._where, key=self.query_one(Grid).cursor.key)

    def tenant_here(self) -> str | None:
        row = self._row()
        return row.tenant_id if row else None

    def holder(self) -> Place | str:
        row = self._row()
        return holder_of(row) if row else super().holder()

    def crumb(self) -> Line:
        page = self._frame.page if self._frame else None
        rows = "" if page is None else f"{len(page.rows)} row{'' if len(page.rows) == 1 else 's'}   "
        more = " (pgdn next)" if self.next_page() else ""
        shown = Span(self._where, Tone.ACCENT) if self._where else Span("all jobs", Tone.PLAIN)
        parts: list[str | Span] = [" ", Span("filter ", Tone.MUTED), shown]
        if words := self.marks.words([str(r.id) for r in page.rows] if page else []):
            parts += ["   ", Span(words, Tone.ACCENT)]
        right = f"{rows}{SORT_WORDS[self._sort]}   page {self.pages.number}{more} "
        return line(*parts, right=(Span(right, Tone.MUTED),))

    def marks_shown(self) -> int:
        return self.marks.count

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        fresh = frame is not self._frame
        gone = self._gone(frame) if fresh else []
        self._frame = frame
        page = frame.page
        if fresh:
            self._before = page.rows if page is not None else []
            self.marks.seen(self._before)
        grid = self.query_one(Grid)
        empty = empty_jobs(self._where, self._strangers or ())
        grid.set_table(job_table(frame, self.desk.look(), gone=gone, empty=empty))
        grid.set_marks(self.marks.keys)
        if fresh and page is not None and self._wanted is not None:
            grid.go(self._wanted)
            self._wanted = None
        nothing = page is not None and not page.rows and page.next is None and self.pages.number == 1
        if nothing and self._strangers is None:
            self._strangers = ()
            self.run_worker(self._look_for_strangers(self._where), exit_on_error=False)

    async def _look_for_strangers(self, where: str) -> None:
        told = await strangers(self.desk.source, parse_where(where))
        if told and where == self._where:
            self._strangers = told
            self.receive(self._frame)

    def _gone(self, frame: Frame) -> list[tuple[int, JobRow]]:
        """Rows that left from between rows that stayed: those did not scroll away, they no longer match."""
        if frame.page is None or not self._before:
            return []
        now = {row.id for row in frame.page.rows}
        last = max((i for i, row in enumerate(self._before) if row.id in now), default=0)
        return [(i, row) for i, row in enumerate(self._before[:last]) if row.id not in now]

    def _row(self) -> JobRow | None:
        key = self.query_one(Grid).cursor.key
        return next((r for r in self._before if str(r.id) == key), None)

    # -- filter and pages ------------------------------------------------------------------------------
    def filter_text(self) -> str:
        return self._where

    def type_filter(self, text: str) -> None:
        self.hint(filter_error(text) or GRAMMAR)

    def apply_filter(self, text: str) -> None:
        try:
            parse_where(text)
        except FilterInvalid:
            return
        self.close_filter()
        self.desk.go(Place("jobs", where=text.strip()))

    def _list(self, where: str) -> None:
        if where == self._where and self._frame is not None and self.pages.after is None:
            return
        self._where = where
        self._strangers = None
        self.restart()

    def _next_sort(self) -> None:
        sorts = list(SORT_WORDS)
        self._sort = sorts[(sorts.index(self._sort) + 1) % len(sorts)]
        self.restart()

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self._open,
            "back": self._back,
            "sort": self._next_sort,
            "mark": self._mark,
            "mark.page": lambda: self._marking(lambda: self.marks.add(self._before)),
            "mark.all": lambda: self._marking(self.marks.mark_all),
            "mark.clear": lambda: self._marking(self.marks.clear),
            "retry": lambda: self._act(Action.RETRY),
            "cancel": lambda: self._act(Action.CANCEL),
            "why": self._why,
            "copy.id": self._copy,
            "copy.cli": self._copy_cli,
        }

    def unfit(self, action: KeyAction) -> str | None:
        if action.id in {"open", "why", "mark", "copy.id", "holder"} and self._row() is None:
            return "no job is under the cursor"
        if action.id in {"retry", "cancel"}:
            return self.marks.unfit(action.id, self._row(), self._where)
        if action.id == "mark.all" and not self._where:
            return "an empty filter would mean everything: filter first"
        return None

    def acted(self, plan: Plan, outcome: ActOutcome) -> None:
        self.marks.done({str(job) for job in outcome.done}, all_of_them=plan.target.where is not None)
        self._show_marks()

    def on_grid_sort_asked(self) -> None:
        self._next_sort()

    def _back(self) -> None:
        if self.marks.count:
            self._marking(self.marks.clear)
        elif not self.desk.up() and self._where:
            self.desk.go(Place("jobs", where=""))

    def _open(self) -> None:
        row = self._row()
        if row is not None:
            self.desk.go(Place("run", job=row.id))

    def _mark(self) -> None:
        row = self._row()
        if row is not None:
            self.marks.toggle(row)
            self.query_one(Grid).move(1)
            self._show_marks()

    def _marking(self, change: Callable[[], None]) -> None:
        change()
        self._show_marks()

    def _show_marks(self) -> None:
        self.query_one(Grid).set_marks(self.marks.keys)
        self.bars()

    def _act(self, action: Action) -> None:
        row = self._row()
        target: str | tuple[UUID, ...]
        note = self.marks.note([str(job.id) for job in self._before])
        if self.marks.all:
            target, what = self._where, f"all jobs of {self._where}"
        elif self.marks.keys:
            target = tuple(UUID(key) for key in sorted(self.marks.keys))
            what = f"{len(target)} marked job{'' if len(target) == 1 else 's'}"
        elif row is not None:
            target, what = (row.id,), f"{row.name} {fmt.short_id(row.id)}"
        else:
            return
        self.desk.act(Intent(action, target, f"{action.upper()} {what}", note=note))

    def _why(self) -> None:
        row = self._row()
        if row is not None:
            self.desk.show_why(row.id)

    def _copy(self) -> None:
        row = self._row()
        if row is not None:
            self.desk.copy(str(row.id))

    def _copy_cli(self) -> None:
        where = f" --where {shlex.quote(self._where)}" if self._where else ""
        self.desk.copy(f"ultijobs jobs ls{where}")
