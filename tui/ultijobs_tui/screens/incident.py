"""Incident: the first screen of an incident, and of every start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from textual.widget import Widget

from ultijobs.inspection import Action, PlanOptions, Stuck, StuckKind, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.look import Look
from ultijobs_tui.present.causes import short_fingerprint
from ultijobs_tui.present.holder import holder_of_stuck, place_of
from ultijobs_tui.present.incident import gauges, incident_table, pace, stuck_panel
from ultijobs_tui.screens.base import CockpitScreen, bindings_of
from ultijobs_tui.table import Line, Span, Tone, line, rule
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["IncidentScreen"]

_FRESH_TICKS = 3


class IncidentScreen(CockpitScreen):
    VIEW = "incident"
    PANEL_ROWS = 6
    HEAD_ROWS = 2
    BINDINGS = bindings_of("incident")

    def __init__(self) -> None:
        super().__init__()
        self._find = ""
        self._seen: dict[str, int] | None = None
        self._frame: Frame | None = None

    def needs(self) -> Needs:
        return Needs(overview=True)

    def body(self) -> Iterable[Widget]:
        yield Lines(id="gauges", classes="gauges")
        yield Lines(id="gauge-rule", classes="rule")
        yield Grid(id="stuck", classes="grows")
        yield Lines(id="panel", classes="panel roomy")
        yield Lines(classes="filler")

    def arrive(self, place: Place) -> None:
        if place.key is not None:
            self.query_one(Grid).go(place.key)

    def holder(self) -> Place | str:
        stuck = self._stuck()
        return holder_of_stuck(stuck) if stuck else super().holder()

    def tenant_here(self) -> str | None:
        stuck = self._stuck()
        return stuck.tenant if stuck else None

    def crumb(self) -> Line:
        if self._find:
            return line(
                " ", Span("find ", Tone.MUTED), Span(self._find, Tone.ACCENT), Span("   / to change", Tone.MUTED)
            )
        right = pace(self.desk.history, self.desk.look())
        return line(" ", Span("what is stuck, the worst first", Tone.MUTED), right=right)

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        if frame is not self._frame:
            self._age_rows(frame)
        self._frame = frame
        look = self.desk.look()
        self.query_one("#gauges", Lines).set_lines([gauges(frame.overview, self.desk.history, look)])
        self.query_one("#gauge-rule", Lines).set_lines([rule()])
        self.query_one(Grid).set_table(incident_table(frame, look, fresh=self._fresh(), find=self._find))
        self._panel(look)

    def moved(self, grid: Grid) -> None:  # noqa: ARG002 - there is one
        self._panel(self.desk.look())

    def _panel(self, look: Look) -> None:
        overview = self._frame.overview if self._frame else None
        self.query_one("#panel", Lines).set_lines(stuck_panel(self._stuck(), overview, look))

    def _age_rows(self, frame: Frame) -> None:
        """Rows that were not there before are marked for a few ticks; those of the first frame are not news."""
        keys = [s.key for s in frame.overview.stuck] if frame.overview else []
        if self._seen is None:
            self._seen = dict.fromkeys(keys, _FRESH_TICKS)
        else:
            self._seen = {key: self._seen.get(key, -1) + 1 for key in keys}

    def _fresh(self) -> frozenset[str]:
        return frozenset(key for key, ticks in (self._seen or {}).items() if ticks < _FRESH_TICKS)

    def _stuck(self) -> Stuck | None:
        overview = self._frame.overview if self._frame else None
        key = self.query_one(Grid).cursor.key
        return next((s for s in overview.stuck if s.key == key), None) if overview else None

    # -- filter ----------------------------------------------------------------------------------------
    def filter_text(self) -> str:
        return self._find

    def type_filter(self, text: str) -> None:
        self._find = text
        self._again()

    def apply_filter(self, text: str) -> None:
        self.type_filter(text)
        self.close_filter()

    def leave_filter(self) -> None:
        self.type_filter("")

    def _again(self) -> None:
        if self._frame is not None:
            self.show(self._frame)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            "open": self._open,
            "back": self.leave_filter,
            "canary": lambda: self._retry(canary=True),
            "retry": lambda: self._retry(canary=False),
            "pause": lambda: self._queue_act(Action.PAUSE),
            "resume": lambda: self._queue_act(Action.RESUME),
            "why": self._why,
            "copy.id": self._copy,
            "copy.cli": self._copy_cli,
        }

    def unfit(self, action: KeyAction) -> str | None:  # noqa: PLR0911 - one line per reason
        if action.id not in {"open", "canary", "retry", "pause", "resume", "why", "copy.id", "copy.cli"}:
            return None
        stuck = self._stuck()
        if stuck is None:
            return "nothing is under the cursor"
        if action.id in {"canary", "retry"} and stuck.kind is not StuckKind.DEAD:
            return "only dead letters can be retried"
        if action.id in {"canary", "retry"} and not stuck.where:
            return "this cause has no filter to find its jobs by"
        if action.id == "resume" and stuck.kind is not StuckKind.PAUSED:
            return "this queue is not paused"
        if action.id == "pause":
            return _unpausable(stuck)
        if action.id == "why" and not (stuck.cause and stuck.cause.sample):
            return "there is no single job behind this row: enter lists them"
        return None

    def _open(self) -> None:
        stuck = self._stuck()
        place = place_of(stuck) if stuck else None
        if place is not None:
            self.desk.go(place)

    def _retry(self, *, canary: bool) -> None:
        stuck = self._stuck()
        if stuck is None or stuck.where is None:
            return
        name = short_fingerprint(stuck.cause) if stuck.cause else str(stuck.kind)
        title = f"CANARY: retry one job of {name}" if canary else f"RETRY the jobs of {name}"
        options = PlanOptions(limit=1) if canary else PlanOptions()
        self.desk.act(Intent(Action.RETRY, stuck.where, title, options, follow=canary))

    def _queue_act(self, action: Action) -> None:
        stuck = self._stuck()
        queue = queue_of(stuck) if stuck else None
        if queue is not None:
            self.desk.act(Intent(action, Target(queue=queue), f"{action.upper()} queue {queue}"))

    def _why(self) -> None:
        stuck = self._stuck()
        if stuck and stuck.cause and stuck.cause.sample:
            self.desk.show_why(stuck.cause.sample[0])

    def _copy(self) -> None:
        stuck = self._stuck()
        if stuck is not None:
            cause = stuck.cause
            self.desk.copy((cause.fingerprint if cause else None) or stuck.queue or stuck.where or stuck.key)

    def _copy_cli(self) -> None:
        stuck = self._stuck()
        if stuck is not None:
            self.desk.copy(f"ultijobs jobs ls --where '{stuck.where}'" if stuck.where else "ultijobs queues ls")


def queue_of(stuck: Stuck) -> str | None:
    """The one queue that a row is about."""
    if stuck.cause is None:
        return stuck.queue
    queues = list(stuck.cause.queues)
    return queues[0] if len(queues) == 1 else None


def _unpausable(stuck: Stuck) -> str | None:
    if stuck.kind is StuckKind.PAUSED:
        return "this queue is paused already"
    return None if queue_of(stuck) else "this row is not about one queue: pause it on 2"
