"""Incident: the first screen of an incident, and of every start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from textual.widget import Widget

from ultijobs.inspection import Action, PlanOptions, Stuck, StuckKind, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.causes import short_fingerprint
from ultijobs_tui.present.fitting import unfit_for_queue, unfit_for_state
from ultijobs_tui.present.holder import holder_of_stuck, place_of
from ultijobs_tui.present.incident import gauges, incident_table, pace, stuck_panel
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.screens.listing import ListScreen
from ultijobs_tui.table import Line, Span, Table, Tone, line, rule
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["IncidentScreen"]

_FRESH_TICKS = 3


class IncidentScreen(ListScreen[Stuck]):
    VIEW = "incident"
    PANEL_ROWS = 8
    HEAD_ROWS = 2
    BINDINGS = bindings_of("incident")
    NOUN = "line"
    ROW_ACTIONS: ClassVar = frozenset({"open", "canary", "retry", "pause", "resume", "why", "copy.id", "copy.cli"})

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, int] | None = None

    def needs(self) -> Needs:
        return Needs(overview=True)

    def body(self) -> Iterable[Widget]:
        yield Lines(id="gauges", classes="gauges")
        yield Lines(id="gauge-rule", classes="rule")
        yield Grid(id="stuck", classes="grows")
        yield Lines(id="panel", classes="panel roomy")
        yield Lines(classes="filler")

    def holder(self) -> Place | str:
        stuck = self.under()
        return holder_of_stuck(stuck) if stuck else super().holder()

    def tenant_here(self) -> str | None:
        stuck = self.under()
        return stuck.tenant if stuck else None

    def summary(self) -> list[str | Span]:
        return [Span("what is stuck, the worst first", Tone.MUTED)]

    def crumb(self) -> Line:
        return line(*super().crumb().left, right=pace(self.desk.history, self.desk.look()))

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        look = self.desk.look()
        self.query_one("#gauges", Lines).set_lines([gauges(frame.overview, self.desk.history, look)])
        self.query_one("#gauge-rule", Lines).set_lines([rule()])
        super().show(frame)

    def table(self, frame: Frame) -> Table:
        return incident_table(frame, self.desk.look(), fresh=self._fresh(), find=self.find)

    def panel(self) -> list[Line]:
        overview = self.frame.overview if self.frame else None
        return stuck_panel(self.under(), overview, self.desk.history, self.desk.look())

    def rows(self, frame: Frame) -> Sequence[Stuck] | None:
        return frame.overview.stuck if frame.overview else None

    def row_key(self, row: Stuck) -> str:
        return row.key

    def note(self, frame: Frame) -> None:
        """Rows that were not there before are marked for a few ticks; those of the first frame are not news."""
        keys = [s.key for s in frame.overview.stuck] if frame.overview else []
        if self._seen is None:
            self._seen = dict.fromkeys(keys, _FRESH_TICKS)
        else:
            self._seen = {key: self._seen.get(key, -1) + 1 for key in keys}

    def _fresh(self) -> frozenset[str]:
        return frozenset(key for key, ticks in (self._seen or {}).items() if ticks < _FRESH_TICKS)

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            **super().handlers(),
            "open": self.with_row(self._open),
            "canary": self.with_row(lambda stuck: self._retry(stuck, canary=True)),
            "retry": self.with_row(lambda stuck: self._retry(stuck, canary=False)),
            "pause": self.with_row(lambda stuck: self._queue_act(stuck, Action.PAUSE)),
            "resume": self.with_row(lambda stuck: self._queue_act(stuck, Action.RESUME)),
            "why": self.with_row(self._why),
            "pager": self.with_row(self._pager),
            "copy.id": self.with_row(self._copy),
            "copy.cli": self.with_row(self._copy_cli),
        }

    def unfit(self, action: KeyAction) -> str | None:  # noqa: PLR0911 - one line per reason
        stuck = self.under()
        if stuck is None:
            return super().unfit(action)
        if action.id in {"canary", "retry"} and stuck.kind is not StuckKind.DEAD:
            return "only dead letters can be retried"
        if action.id in {"canary", "retry"} and not stuck.where:
            return "this cause has no filter to find its jobs by"
        if action.id in {"pause", "resume"}:
            if stuck.kind is StuckKind.PAUSED:
                return unfit_for_state(action.id, "paused")
            return unfit_for_queue(action.id, queue_of(stuck), self.frame.overview if self.frame else None)
        if action.id in {"why", "pager"} and not (stuck.cause and stuck.cause.sample):
            return "there is no single job behind this row: enter lists them"
        return None

    def _open(self, stuck: Stuck) -> None:
        place = place_of(stuck)
        if place is not None:
            self.desk.go(place)

    def _retry(self, stuck: Stuck, *, canary: bool) -> None:
        if stuck.where is None:
            return
        name = short_fingerprint(stuck.cause) if stuck.cause else str(stuck.kind)
        title = f"CANARY: retry one job of {name}" if canary else f"RETRY the jobs of {name}"
        options = PlanOptions(limit=1) if canary else PlanOptions()
        self.desk.act(Intent(Action.RETRY, stuck.where, title, options, follow=canary))

    def _queue_act(self, stuck: Stuck, action: Action) -> None:
        queue = queue_of(stuck)
        if queue is not None:
            self.desk.act(Intent(action, Target(queue=queue), f"{action.upper()} queue {queue}"))

    def _why(self, stuck: Stuck) -> None:
        if stuck.cause and stuck.cause.sample:
            self.desk.show_why(stuck.cause.sample[0])

    def _pager(self, stuck: Stuck) -> None:
        if stuck.cause and stuck.cause.sample:
            self.desk.show_error(stuck.cause.sample[0])

    def _copy(self, stuck: Stuck) -> None:
        cause = stuck.cause
        self.desk.copy((cause.fingerprint if cause else None) or stuck.queue or stuck.where or stuck.key)

    def _copy_cli(self, stuck: Stuck) -> None:
        self.desk.copy(f"ultijobs jobs ls --where '{stuck.where}'" if stuck.where else "ultijobs queues ls")


def queue_of(stuck: Stuck) -> str | None:
    """The one queue that a row is about."""
    if stuck.cause is None:
        return stuck.queue
    queues = list(stuck.cause.queues)
    return queues[0] if len(queues) == 1 else None
