"""Run detail: one job, its steps over time, every attempt, and the error under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from textual.widget import Widget

from ultijobs.inspection import Action, AttemptRecord, JobDetail, PlanOptions, StepRecord, StepStatus
from ultijobs_tui import format as fmt
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.present.fitting import standing, unfit_for
from ultijobs_tui.present.holder import holder_of
from ultijobs_tui.present.run import (
    attempt_table,
    error_lines,
    retry_line,
    run_facts,
    run_title,
    step_table,
    telling_step,
)
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.bindings import bindings_of
from ultijobs_tui.table import Line, Span, Tone, line, rule
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["RunScreen"]

_ERROR_LINES = 8
_ERROR_LINES_SHORT = 3


class RunScreen(CockpitScreen):
    VIEW = "run"
    BINDINGS = bindings_of("run")

    def __init__(self, job: UUID, tab: str) -> None:
        super().__init__()
        self.job = job
        self._tab = tab
        self._detail: JobDetail | None = None
        self._failure: str | None = None
        self._placed = False

    def place(self) -> Place:
        return Place("run", job=self.job)

    def tenant_here(self) -> str | None:
        return self._detail.row.tenant_id if self._detail else None

    def holder(self) -> Place | str:
        return holder_of(self._detail.row) if self._detail else "the job is not read yet"

    def needs(self) -> Needs:
        return Needs(job=self.job)

    def tab(self) -> str:
        return self._tab

    def body(self) -> Iterable[Widget]:
        yield Lines(id="facts", classes="panel")
        yield Lines(id="steps-rule", classes="rule")
        yield Grid(id="steps")
        yield Lines(id="retry-hint", classes="rule")
        yield Lines(id="attempts-rule", classes="rule")
        yield Grid(id="attempts")
        yield Lines(id="error", classes="panel")

    def crumb(self) -> Line:
        if self._detail is None:
            return line(Span(f" ‹ {fmt.short_id(self.job)}", Tone.MUTED))
        return run_title(self._detail.row, self.desk.look())

    @property
    def _steps(self) -> Grid:
        return self.query_one("#steps", Grid)

    @property
    def _attempts(self) -> Grid:
        return self.query_one("#attempts", Grid)

    # -- showing ---------------------------------------------------------------------------------------
    def show(self, frame: Frame) -> None:
        self._failure = frame.failures.get("job")
        if frame.job is None:
            if self._detail is None:
                self._unknown()
            return
        detail = self._detail = frame.job
        look = self.desk.look()
        self.query_one("#facts", Lines).set_lines(run_facts(detail, look))
        self.query_one("#steps-rule", Lines).set_lines([rule("steps", f"{len(detail.steps)} recorded")])
        self._steps.set_table(step_table(detail, look))
        self.query_one("#attempts-rule", Lines).set_lines([rule("attempts", "newest last")])
        self._attempts.set_table(attempt_table(detail, look))
        if not self._placed:
            self._placed = True
            if (step := telling_step(detail)) is not None:
                self._steps.go(step)
            self._attempts.move_to(len(detail.attempts) - 1)
            if not detail.steps and detail.attempts:
                self._attempts.focus()
        self._panel()

    def _unknown(self) -> None:
        said = self._failure or "reading…"
        lines = [line(" ", Span(said, Tone.BAD if self._failure else Tone.MUTED))]
        if self._failure:
            lines.append(line(" ", Span("esc", Tone.KEY), " back   ", Span("3", Tone.KEY), " search by filter"))
        self.query_one("#facts", Lines).set_lines(lines)

    def moved(self, grid: Grid) -> None:  # noqa: ARG002 - both tell in one panel
        self._panel()

    def _panel(self) -> None:
        if self._detail is not None:
            step = self._step() if self.focused is not self._attempts else None
            self.query_one("#retry-hint", Lines).set_lines([retry_line(self._detail, step)])
        title, text = self._under()
        most = _ERROR_LINES if self.desk.look().roomy else _ERROR_LINES_SHORT
        self.query_one("#error", Lines).set_lines(error_lines(title, text, most))

    def _under(self) -> tuple[str, str | None]:
        """The error that belongs to the row under the cursor of the focused list."""
        detail, step = self._detail, self._step()
        if detail is None:
            return "", None
        if self.focused is not self._attempts and step is not None and step.status == StepStatus.COMPLETED:
            return "", None
        attempt = self._attempt() if self.focused is self._attempts else None
        if attempt is None and detail.attempts:
            attempt = detail.attempts[-1]
        if attempt is not None:
            return f"error of attempt {attempt.attempt}", attempt.traceback or attempt.error
        return "last error", detail.row.last_error

    def _step(self) -> StepRecord | None:
        key = self._steps.cursor.key
        return next((s for s in self._detail.steps if s.name == key), None) if self._detail else None

    def _attempt(self) -> AttemptRecord | None:
        key = self._attempts.cursor.key
        return next((a for a in self._detail.attempts if str(a.lease_no) == key), None) if self._detail else None

    def shown_where(self) -> str:
        return f"id:{self.job}"

    # -- keys ------------------------------------------------------------------------------------------
    def handlers(self) -> Mapping[str, Callable[[], None]]:
        return {
            "move.pane": self._other_pane,
            "retry": self._retry,
            "cancel": self._cancel,
            "why": lambda: self.desk.show_why(self.job),
            "input": lambda: self.desk.show_input(self.job),
            "pager": self._pager,
            "copy.id": lambda: self.desk.copy(str(self.job)),
            "copy.cli": lambda: self.desk.copy(f"ultijobs jobs show {self.job}"),
        }

    def unfit(self, action: KeyAction) -> str | None:
        if action.id not in {"retry", "cancel", "why", "input", "pager"}:
            return None
        if self._detail is None:
            return "the job is not read yet"
        if action.id == "pager" and not self._under()[1]:
            return "there is no error under the cursor"
        return unfit_for(action.id, {standing(self._detail.row)})

    def _other_pane(self) -> None:
        other = self._steps if self.focused is self._attempts else self._attempts
        other.focus()
        self._panel()

    def _retry(self) -> None:
        """From the step under the cursor: a stored one is dropped with all after it, a failed one runs again anyway."""
        if self._detail is None:
            return
        step = self._step() if self.focused is self._steps else None
        name = f"{self._detail.row.name} {fmt.short_id(self.job)}"
        if step is not None and step.status == StepStatus.COMPLETED:
            options = PlanOptions(from_step=step.name)
            self.desk.act(
                Intent(Action.RETRY, (self.job,), f"RETRY {name} from step {step.name}", options, follow=True)
            )
        else:
            self.desk.act(Intent(Action.RETRY, (self.job,), f"RETRY {name}", follow=True))

    def _cancel(self) -> None:
        if self._detail is not None:
            name = f"{self._detail.row.name} {fmt.short_id(self.job)}"
            self.desk.act(Intent(Action.CANCEL, (self.job,), f"CANCEL {name}"))

    def _pager(self) -> None:
        title, text = self._under()
        if text:
            self.desk.page_text(f"{title} of {fmt.short_id(self.job)}", text)
