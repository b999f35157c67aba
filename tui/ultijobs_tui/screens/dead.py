"""Dead letters: the causes above, the jobs of the one under the cursor below."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from textual.widget import Widget

from ultijobs.errors import FilterInvalid
from ultijobs.inspection import Action, Cause, Field, JobRow, PlanOptions, Sort, Tally, parse_where
from ultijobs_tui import format as fmt
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs, PageAsk, TallyAsk
from ultijobs_tui.present.causes import cause_key, cause_panel, cause_table, cause_where, short_fingerprint
from ultijobs_tui.present.filters import GRAMMAR, filter_error
from ultijobs_tui.present.jobs import dead_job_table
from ultijobs_tui.present.tallies import NOBODY, narrowed, tally_key, tally_table
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.table import Line, Span, Table, Tone, line, rule
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["DEAD", "DeadScreen"]

DEAD = "state:dead,failed"
_PAGE = 100


class DeadScreen(CockpitScreen):
    VIEW = "dead"
    BINDINGS = bindings_of("dead")

    def __init__(self) -> None:
        super().__init__()
        self._where = DEAD
        self._frame: Frame | None = None
        self._causes: list[Cause] = []
        self._wanted: str | None = None
        self._wanted_job: str | None = None
        self._by: Field | None = None
        self._tallies: list[Tally] = []

    def needs(self) -> Needs:
        where = self._group_where()
        page = PageAsk(where, Sort.STOPPED, None, _PAGE) if where else None
        if self._by is not None:
            return Needs(tally=TallyAsk(self._where, self._by), page=page)
        return Needs(causes=self._where, page=page)

    def body(self) -> Iterable[Widget]:
        yield Grid(id="causes")
        yield Lines(id="cause-panel", classes="panel roomy")
        yield Lines(id="jobs-rule", classes="rule")
        yield Grid(id="cause-jobs")

    def arrive(self, place: Place) -> None:
        self._wanted, self._wanted_job = place.key, place.below
        where = place.where or DEAD
        if where != self._where:
            self._where = where
            self._grid.forget()
        (self._grid if place.below is None else self._jobs).focus()
        if self._frame is not None:
            self._go_wanted()

    def place(self) -> Place:
        below = self._jobs.cursor.key if self._on_jobs else None
        return Place("dead", where=self._where, key=self._grid.cursor.key, below=below)

    def tenant_here(self) -> str | None:
        job, one = self._job(), self._tally()
        if self._on_jobs and job is not None:
            return job.tenant_id
        return one.value if one is not None and self._by is Field.TENANT else None

    @property
    def _grid(self) -> Grid:
        return self.query_one("#causes", Grid)

    @property
    def _jobs(self) -> Grid:
        return self.query_one("#cause-jobs", Grid)

    @property
    def _on_jobs(self) -> bool:
        return self.focused is self._jobs

    def crumb(self) -> Line:
        causes = self._causes
        total = sum(c.count.value for c in causes)
        terminal = sum(c.count.value for c in causes if c.stop_reason == "terminal")
        share = f" · {100 * terminal / total:.0f}% terminal" if total else ""
        some = any(c.count.kind != "exact" for c in causes)
        head = f"{total:,}{'+' if some else ''} dead · {len(causes)} cause{'' if len(causes) == 1 else 's'}{share}"
        filtered: list[str | Span] = []
        if self._where != DEAD:
            filtered = [
                "   ",
                Span("filter ", Tone.MUTED),
                Span(self._where, Tone.ACCENT),
                Span("  esc back" if self.desk.leads_up else "  esc all", Tone.MUTED),
            ]
        if self._by is not None:
            way = (Span(self.keys.name("group"), Tone.KEY), Span(" next grouping ", Tone.MUTED))
            return line(" dead letters by ", Span(str(self._by), Tone.STRONG), *filtered, right=way)
        return line(" ", head, *filtered, right=(Span("the largest first ", Tone.MUTED),))

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        self._frame = frame
        look = self.desk.look()
        if frame.causes is not None:
            self._causes = frame.causes
        before = self._group_where()
        if self._by is not None:
            self._tallies = frame.tally if frame.tally is not None else self._tallies
            self._grid.set_table(tally_table(frame, self._by, look, stopped=True))
        else:
            self._grid.set_table(cause_table(frame, look, where="" if self._where == DEAD else self._where))
        self._go_wanted()
        where, cause = self._group_where(), self._cause()
        if where is not None and where == before:
            self._jobs.set_table(dead_job_table(frame, look, step=cause.step if cause else None))
            if self._wanted_job is not None and frame.page is not None:
                self._jobs.go(self._wanted_job)
                self._wanted_job = None
        elif where is None:
            self._jobs.set_table(Table((), ()))
        self._panel()

    def receive(self, frame: Frame | None) -> None:
        super().receive(frame)
        known = frame is not None and frame.causes is not None and self._by is None
        if frame is not None and known and self.alive and not frame.answers(self.needs()):
            self._causes = frame.causes or []
            self._grid.set_table(cause_table(frame, self.desk.look()))
            self._go_wanted()
            self._panel()
            self.desk.poke()

    def moved(self, grid: Grid) -> None:
        if grid is self._grid:
            self._jobs.forget()
            self._jobs.set_table(dead_job_table(Frame(self.needs(), self.desk.look().now), self.desk.look()))
            self.desk.poke()
        self._panel()

    def _panel(self) -> None:
        cause = self._cause()
        look = self.desk.look()
        self.query_one("#cause-panel", Lines).set_lines(
            cause_panel(cause, self.desk.history, look)[:-1] if cause else []
        )
        page = self._frame.page if self._frame else None
        group = self._group()
        shown = f"newest {len(page.rows)} of {fmt.count(group.count)}" if page and group else ""
        title = f"jobs of {self._called()}" if group else ""
        self.query_one("#jobs-rule", Lines).set_lines([rule(title, shown)])

    def _go_wanted(self) -> None:
        if self._wanted is not None and self._grid.go(self._wanted):
            self._wanted = None

    def _cause(self) -> Cause | None:
        key = self._grid.cursor.key
        return None if self._by else next((c for c in self._causes if cause_key(c) == key), None)

    def _tally(self) -> Tally | None:
        key = self._grid.cursor.key
        return next((t for t in self._tallies if tally_key(t) == key), None) if self._by else None

    def _group(self) -> Cause | Tally | None:
        return self._cause() or self._tally()

    def _group_where(self) -> str | None:
        cause, one = self._cause(), self._tally()
        if cause is not None:
            return cause_where(cause, self._where)
        return narrowed(self._where, self._by, one) if one is not None and self._by is not None else None

    def _called(self) -> str:
        """What the group under the cursor is called."""
        cause, one = self._cause(), self._tally()
        if cause is not None:
            return short_fingerprint(cause)
        return f"{self._by} {one.value or NOBODY}" if one is not None else ""

    def _next_group(self) -> None:
        ways = (None, Field.TENANT, Field.QUEUE, Field.JOB)
        self._by = ways[(ways.index(self._by) + 1) % len(ways)]
        self._causes, self._tallies = [], []
        self._grid.forget()
        self._grid.focus()
        self.receive(Frame(self.needs(), self.desk.look().now))
        self.desk.poke()

    def _job(self) -> JobRow | None:
        page = self._frame.page if self._frame else None
        key = self._jobs.cursor.key
        return next((r for r in page.rows if str(r.id) == key), None) if page else None

    # -- filter ----------------------------------------------------------------------------------------
    def filter_text(self) -> str:
        return self._where

    def shown_where(self) -> str:
        return (self._group_where() if self._on_jobs else None) or self._where

    def type_filter(self, text: str) -> None:
        self.hint(filter_error(text) or GRAMMAR)

    def apply_filter(self, text: str) -> None:
        try:
            named = parse_where(text).states()
        except FilterInvalid:
            return
        self.close_filter()
        words = text.strip()
        self.desk.go(Place("dead", where=words if named is not None else f"{DEAD} {words}".strip()))

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            "open": self._open,
            "group": self._next_group,
            "back": self._back,
            "move.pane": self._other_pane,
            "canary": lambda: self._retry(canary=True),
            "retry": lambda: self._retry(canary=False),
            "why": lambda: self._of_one(self.desk.show_why),
            "pager": lambda: self._of_one(self.desk.show_error),
            "copy.id": self._copy,
            "copy.cli": self._copy_cli,
        }

    def unfit(self, action: KeyAction) -> str | None:
        if action.id not in {"open", "canary", "retry", "why", "pager", "copy.id", "copy.cli"}:
            return None
        cause, group = self._cause(), self._group()
        if group is None:
            return "no cause is under the cursor"
        if self._on_jobs and self._job() is None:
            return "no job is under the cursor"
        if action.id in {"canary", "retry"} and not self._on_jobs and self._group_where() is None:
            return "no filter finds these jobs: mark them on 3"
        if action.id in {"why", "pager"} and not self._on_jobs and not (cause and cause.sample):
            return "no sample is known: tab, and choose a job"
        return None

    def _other_pane(self) -> None:
        (self._grid if self._on_jobs else self._jobs).focus()

    def _open(self) -> None:
        job = self._job()
        if not self._on_jobs:
            self._jobs.focus()
        elif job is not None:
            self.desk.go(Place("run", job=job.id))

    def _back(self) -> None:
        if self._on_jobs:
            self._grid.focus()
        elif not self.desk.up() and self._where != DEAD:
            self.desk.go(Place("dead"))

    def _retry(self, *, canary: bool) -> None:
        where, job = self._group_where(), self._job()
        if self._on_jobs and job is not None:
            title = f"{'CANARY: retry' if canary else 'RETRY'} {job.name} {fmt.short_id(job.id)}"
            self.desk.act(Intent(Action.RETRY, (job.id,), title, follow=True))
        elif where is not None:
            name = self._called()
            title = f"CANARY: retry one job of {name}" if canary else f"RETRY the jobs of {name}"
            options = PlanOptions(limit=1) if canary else PlanOptions()
            self.desk.act(Intent(Action.RETRY, where, title, options, follow=canary))

    def _of_one(self, show: Callable[[UUID], None]) -> None:
        cause, job = self._cause(), self._job()
        if self._on_jobs and job is not None:
            show(job.id)
        elif cause is not None:
            show(cause.sample[0])

    def _copy(self) -> None:
        cause, job = self._cause(), self._job()
        if self._on_jobs and job is not None:
            self.desk.copy(str(job.id))
        elif cause is not None:
            self.desk.copy(cause.fingerprint or cause.error_code or "")
        elif (one := self._tally()) is not None:
            self.desk.copy(one.value or NOBODY)

    def _copy_cli(self) -> None:
        where = self._group_where() or self._where
        self.desk.copy(f"ultijobs jobs ls --where {shlex.quote(where)}")
