"""The plan dialog: the only way from a key to a change. Cancel is always what enter does first."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Protocol

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Key
from textual.widgets import Button, Input

from ultijobs.errors import UltijobsError
from ultijobs.inspection import Action, ActOutcome, Plan, PlanOptions, equivalent, parse_duration, parse_pace
from ultijobs_tui import format as fmt
from ultijobs_tui.link import explain
from ultijobs_tui.present.plan import confirm_word, plan_lines, takes_reason
from ultijobs_tui.screens.modal import Modal
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.field import Field
from ultijobs_tui.widgets.lines import Lines

__all__ = ["Applied", "PlanDialog"]


_AROUND: Final = 6
"""Rows of a dialog besides the plan and the fields: its border, title, choices and the line that tells the keys."""
_LEAST_ROWS: Final = 6
_MOST_ROWS: Final = 18
_VERBS: Final = {Action.OUTBOX_RETRY: "Stage again", Action.DRAIN_QUEUE: "Move"}
_CLOSE: Final = {Action.CANCEL: "Keep"}
"""What leaves all as it is, where `Cancel` would be the act itself."""
_EXIT: Final = {False: "stand by   (enter: exit instead)", True: "exit   (enter: stand by instead)"}


class Apply(Protocol):
    async def __call__(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome: ...


@dataclass(frozen=True, slots=True)
class Applied:
    plan: Plan
    outcome: ActOutcome


class PlanDialog(Modal[Applied | None]):
    """Shows a plan, takes a reason, and applies exactly that plan. None when it was closed before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
        Binding("Y", "copy", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, plan: Plan, title: str, apply: Apply) -> None:
        super().__init__()
        self.plan = plan
        self._title = title
        self._apply = apply
        self._word = confirm_word(plan)
        self._refused = plan.matched.value == 0
        self.applying = False
        self._stopping = False
        self._exit = plan.options.exit
        self._told_for: str | None = None
        """The field whose keys were told last: what is told since stays until the focus moves."""

    @property
    def _paced(self) -> bool:
        """A retry in batches: what failed under load is better tried again at a pace."""
        return self.plan.action is Action.RETRY and self.plan.matched.value > self.plan.options.batch

    @property
    def _verb(self) -> str:
        return _VERBS.get(self.plan.action) or str(self.plan.action).partition("-")[0].capitalize()

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Lines(id="plan-title")
            yield Lines(id="plan-lines", classes="panel")
            if takes_reason(self.plan):
                with Horizontal(classes="field"):
                    yield Lines(id="reason-label", classes="label")
                    yield Field(
                        id="reason",
                        compact=True,
                        select_on_focus=False,
                        placeholder="why, for the activity log (optional)",
                    )
            if self.plan.action is Action.PAUSE:
                with Horizontal(classes="field"):
                    yield Lines(id="for-label", classes="label")
                    yield Field(
                        id="for", compact=True, select_on_focus=False, placeholder="30m, 2h … (empty: until resumed)"
                    )
            if self._paced:
                with Horizontal(classes="field"):
                    yield Lines(id="pace-label", classes="label")
                    yield Field(
                        id="pace", compact=True, select_on_focus=False, placeholder="500/1s … (empty: no pause)"
                    )
            if self.plan.action is Action.DRAIN_WORKER:
                with Horizontal(classes="field"):
                    yield Lines(id="exit-label", classes="label")
                    yield Button(_EXIT[self._exit], id="exit", compact=True)
            with Horizontal(id="choices"):
                yield Button(_CLOSE.get(self.plan.action, "Cancel"), id="cancel", compact=True)
                if self._word is not None:
                    yield Lines(id="word-label", classes="label")
                    yield Field(id="word", compact=True, select_on_focus=False)
                yield Button(self._verb, id="apply", compact=True, disabled=bool(self._word) or self._refused)
            yield Lines(id="plan-hint")

    def on_mount(self) -> None:
        for field in self.query(Input):
            field.cursor_blink = False
        frozen = f"list frozen {fmt.clock(self.plan.as_of)} "
        title = line(" ", Span(self._title, Tone.STRONG), right=(Span(frozen, Tone.MUTED),))
        self.query_one("#plan-title", Lines).set_lines([title])
        labels = {
            "#reason-label": "reason",
            "#exit-label": "afterwards",
            "#for-label": "for",
            "#pace-label": "pace",
            "#word-label": f"type {self._word} to confirm:",
        }
        for name, text in labels.items():
            for label in self.query(name).results(Lines):
                label.set_lines([line(" ", Span(text, Tone.MUTED))])
        self._show_plan()
        self.query_one("#cancel").focus()

    def on_resize(self) -> None:
        self._show_plan()

    def on_key(self, event: Key) -> None:
        """A digit means the number to confirm, wherever the focus is but in a text."""
        if self._word is None or isinstance(self.focused, Input) or not (event.character or "").isdigit():
            return
        event.stop()
        field = self.query_one("#word", Input)
        field.focus()
        field.insert_text_at_cursor(event.character or "")

    # -- the plan with the operator's words ------------------------------------------------------------
    def _options(self) -> PlanOptions:
        """Raises `DurationInvalid` for a length or a pace that cannot be read."""
        options = self.plan.options
        for field in self.query("#reason").results(Input):
            options = replace(options, reason=field.value.strip() or None)
        for field in self.query("#for").results(Input):
            text = field.value.strip()
            options = replace(options, duration=parse_duration(text, what="the pause") if text else None)
        for field in self.query("#pace").results(Input):
            if text := field.value.strip():
                batch, pause = parse_pace(text)
                options = replace(options, batch=batch, pause=pause)
        if self.plan.action is Action.DRAIN_WORKER:
            options = replace(options, exit=self._exit)
        return options

    def _worded(self) -> Plan:
        options = self._options()
        plan = self.plan
        if options.to is not None:  # The plan's own command hides the password of the address.
            said = f" --reason {shlex.quote(options.reason)}" if options.reason else ""
            return replace(plan, options=options, equivalent=plan.equivalent + said)
        return replace(plan, options=options, equivalent=equivalent(plan.action, plan.target, options, plan.as_of))

    def _show_plan(self) -> None:
        try:
            plan = self._worded()
        except UltijobsError as error:
            self._hint(line(" ", Span(error.cause, Tone.BAD)))
            return
        self._show_keys()
        lines = self.query_one("#plan-lines", Lines)
        most = min(_MOST_ROWS, max(_LEAST_ROWS, self.size.height - _AROUND - len(self.query(".field"))))
        lines.styles.max_height = most
        lines.set_lines(plan_lines(plan, lines.size.width or 76, most))

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        if event.widget.id != self._told_for:
            self._show_keys()

    def _show_keys(self) -> None:
        """What enter does is said in words: where the focus is, only a colour tells."""
        if self.applying:
            return
        self._told_for = self.focused.id if self.focused is not None else None
        match self._told_for:
            case "cancel" | None:
                does = _CLOSE.get(self.plan.action, "Cancel")
            case "apply":
                does = self._verb
            case "exit":
                does = "change"
            case "word" if not self.query_one("#apply", Button).disabled:
                does = self._verb
            case _:
                does = "next"
        self._hint(
            line(
                " ", Span("enter", Tone.KEY), f" {does}   ", Span("tab", Tone.KEY), " next   ",
                Span("Y", Tone.KEY), " copy the command   ", Span("esc", Tone.KEY), " close",
            )
        )  # fmt: skip

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "word":
            self.query_one("#apply", Button).disabled = event.value.strip().replace(",", "") != self._word
            self._show_keys()
        else:
            self._show_plan()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on to the next field; in the last one it applies, when what was typed confirms."""
        if event.input.id == "word" and not self.query_one("#apply", Button).disabled:
            self._start()
        else:
            self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "apply":
            self._start()
        elif event.button.id == "exit":
            self._exit = not self._exit
            event.button.label = _EXIT[self._exit]
            self._show_plan()
        else:
            self.action_close()

    # -- applying --------------------------------------------------------------------------------------
    def action_close(self) -> None:
        if not self.applying:
            self.dismiss(None)
            return
        self._stopping = True
        self._hint(line(" ", Span("stopping after this batch …", Tone.WARN)))

    def action_copy(self) -> None:
        self.desk.copy(self._worded().equivalent)
        self._hint(line(" ", Span("copied the command", Tone.GOOD)))

    def _start(self) -> None:
        if self.applying or self._refused:
            return
        try:
            plan = self._worded()
        except UltijobsError as error:
            self._hint(line(" ", Span(f"{error.cause}: {error.fix}", Tone.BAD)))
            return
        self.applying = True
        self.query_one("#choices").disabled = True
        self._hint(line(" ", Span("applying …", Tone.ACCENT), "  ", Span("esc", Tone.KEY), " stops after this batch"))
        self.run_worker(self._carry_out(plan), exit_on_error=False)

    async def _carry_out(self, plan: Plan) -> None:
        def progress(done: int, total: int | None) -> None:
            of = f" of {total:,}" if total is not None else ""
            self._hint(line(" ", Span(f"{done:,}{of} …", Tone.ACCENT), "  ", Span("esc", Tone.KEY), " stops"))

        try:
            outcome = await self._apply(plan, on_progress=progress, stop=lambda: self._stopping)
        except Exception as error:  # noqa: BLE001 - told in the dialog; what was done stays done and is in the activity log
            self.applying = False
            self.query_one("#choices").disabled = False
            self.query_one("#cancel").focus()
            self._told_for = "cancel"
            self._hint(line(" ", Span(f"✗ {explain(error)}", Tone.BAD)))
            return
        self.dismiss(Applied(plan, outcome))

    def warn(self, text: str) -> None:
        """Said where the dialog tells how it goes."""
        self._hint(line(" ", Span(text, Tone.WARN)))

    def _hint(self, text: Line) -> None:
        self.query_one("#plan-hint", Lines).set_lines([text])
