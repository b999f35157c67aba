"""The cockpit: one poller, one link, a screen per tab, and the acts that screens ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

from textual.app import ScreenStackError
from textual.binding import Binding, BindingType

from ultijobs.inspection import ActOutcome, Plan
from ultijobs_tui import format as fmt
from ultijobs_tui.acting import Acting
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.desk import Intent, Place, Settings
from ultijobs_tui.everywhere import Everywhere
from ultijobs_tui.following import Following
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.grammar import Command
from ultijobs_tui.history import History
from ultijobs_tui.link import Link
from ultijobs_tui.look import Look
from ultijobs_tui.memory import Memory
from ultijobs_tui.narrowing import tell_if_unknown
from ultijobs_tui.navigation import NavigatingApp
from ultijobs_tui.obeying import Obeying
from ultijobs_tui.palette import KeyCommands, Palette
from ultijobs_tui.poller import Budget, Poller
from ultijobs_tui.present.bars import Status
from ultijobs_tui.recording import Recorder, Recording
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.modal import Modal
from ultijobs_tui.screens.plan import PlanDialog
from ultijobs_tui.source import Source, listen
from ultijobs_tui.standing import refusal_of, status_of
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.theme import THEMES
from ultijobs_tui.travel import Travel

__all__ = ["Cockpit"]

_READ_SECONDS = 5.0


class Cockpit(NavigatingApp):
    """Shows what `source` tells, or `past`, a recording. It opens and closes nothing: what it is given outlives it."""

    CSS_PATH = Path(__file__).with_name("theme.tcss")
    TITLE = "ultijobs"
    DEFAULT_MODE: ClassVar[str] = "incident"
    COMMANDS: ClassVar = {KeyCommands}
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "leave", show=False, priority=True)]

    def __init__(
        self,
        source: Source,
        settings: Settings | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        budget: Budget | None = None,
        link: Link | None = None,
        past: Recording | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__()
        self._source = source
        self._settings = settings or Settings()
        self._monotonic = monotonic
        self.memory = Memory(past, recorder)
        self._frame: Frame | None = None
        self._frame_at = 0.0
        self._absolute = False
        self._result = line()
        self._tenant_shown = self._settings.tenant
        self._leaving = False
        self.acting = Acting(self)
        self._everywhere = Everywhere(self)
        self._obeying = Obeying(self)
        self._following = Following()
        self.link = link or Link(monotonic)
        self.poller = Poller(
            source,
            self.link,
            ask=self.asks,
            on_frame=self.feed,
            on_link=self._bars,
            budget=budget or Budget(interval=self._settings.refresh),
            monotonic=monotonic,
        )
        for theme in THEMES:
            self.register_theme(theme)
        self.set_keymap(self._settings.keys.bindings())
        self.theme = self._settings.theme or THEMES[0].name

    # -- life ------------------------------------------------------------------------------------------
    async def on_mount(self) -> None:
        view = self._settings.view if self._settings.view in self.MODES else "incident"
        await self.switch_mode(view)
        if self._settings.queue is None and self._settings.where is None:
            self._places.visit(Place(view))
        if self._settings.queue is not None:
            self.go(Place("queues", key=self._settings.queue))
        if self._settings.where is not None:
            self.go(Place("jobs", where=self._settings.where))
        if (past := self.memory.past) is not None:
            self.travel.to(self._settings.at or past.at(len(past) - 1))
            self.show_moment()
        if not self._source.live or self._settings.still:
            return
        self.run_worker(self.poller.run(), group="poll", exit_on_error=False)
        self.run_worker(listen(self._source, self.poller.hint), group="listen", exit_on_error=False)
        self.set_interval(1.0, self._bars)
        if self._settings.job is not None:
            self.find(self._settings.job)
        if self._settings.tenant is not None:
            self.run_worker(tell_if_unknown(self), exit_on_error=False)

    def on_app_blur(self) -> None:
        self.poller.blurred = True

    def on_app_focus(self) -> None:
        self.poller.blurred = False
        self.poller.poke()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_leave(self) -> None:
        """Leaves; while an act is being applied it asks once."""
        dialog = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(dialog, PlanDialog) and dialog.applying and not self._leaving:
            self._leaving = True
            dialog.warn("an act is being applied: esc stops it after the current batch; once more leaves at once")
            return
        self.exit(0)

    # -- data ------------------------------------------------------------------------------------------
    @property
    def _top(self) -> CockpitScreen | Modal[Any] | None:
        """The visible screen, when it is one of ours; none while the app starts or ends."""
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, CockpitScreen | Modal) else None

    def asks(self) -> Needs:
        """What the visible screen wants to be read next."""
        screen = self._top
        asked = screen.needs() if screen is not None else Needs()
        needs = (Needs(overview=True) if self.travel.away else asked).within(self._tenant_shown)
        return needs.following(self._following.id) if self._following.id else needs

    def feed(self, frame: Frame) -> None:
        """Shows a frame, unless it was read for another tenant."""
        if frame.needs.tenant != self._tenant_shown:
            return
        self._frame = frame
        self._frame_at = self._monotonic()
        if frame.overview is not None:
            ended = self.memory.add(frame.overview)
            if ended is not None:
                self.say(ended, Tone.WARN)
        screen = self._top
        if screen is not None and not self.travel.away:
            with self.batch_update():
                screen.receive(frame)
        if (told := self._following.tell(frame.watch)) is not None:
            self.say(*told)

    def show_moment(self) -> None:
        """Shows what is shown again: now, or the moment that the operator went back to."""
        if (screen := self._top) is not None:
            screen.receive(self.last_frame)
        self._bars()

    def _bars(self) -> None:
        screen = self._top
        if isinstance(screen, CockpitScreen):
            screen.bars()

    def follow(self, id: UUID, plan: Plan) -> None:
        """Watches a retried job until it stops."""
        self._following.start(id, plan)

    # -- what screens ask for --------------------------------------------------------------------------
    @property
    def source(self) -> Source:
        return self._source

    @property
    def history(self) -> History:
        return self.memory.history

    @property
    def travel(self) -> Travel:
        return self.memory.travel

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def ascii_only(self) -> bool:
        return self._settings.ascii

    @property
    def last_frame(self) -> Frame | None:
        if self.travel.away:
            screen = self._top
            return self.travel.frame(screen.needs() if screen is not None else Needs())
        return self._frame

    @property
    def result(self) -> Line:
        return self._result

    def look(self) -> Look:
        size = self.size
        now = self.travel.at or (self._frame.as_of if self._frame else fmt.EPOCH)
        return Look(now, size.width, size.height, absolute=self._absolute, keys=self._settings.keys)

    def status(self, marks: int = 0) -> Status:
        return status_of(self, marks)

    def since_frame(self) -> float:
        """Seconds since the last frame came; 0 where nothing moves by itself."""
        return self._monotonic() - self._frame_at if self._source.live and not self._settings.still else 0.0

    @property
    def read_frame(self) -> Frame | None:
        """What was read last, whatever is shown."""
        return self._frame

    def refusal(self, action: KeyAction) -> str | None:
        return refusal_of(self, action)

    @property
    def tenant(self) -> str | None:
        return self._tenant_shown

    def narrow(self, tenant: str | None) -> None:
        if tenant != self._tenant_shown:
            self._tenant_shown = tenant
            self.memory.begin_again()
            self.say("all tenants" if tenant is None else f"only tenant {tenant}: t shows all again")
            self.poke()

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self._result = line(" ", Span(text, tone))
        self._bars()

    def poke(self) -> None:
        if self.travel.away:
            self.call_later(self.show_moment)
        else:
            self.poller.poke()

    def act(self, intent: Intent) -> None:
        self.run_worker(self.acting.run(intent), group="act", exit_on_error=False)

    def acted(self, plan: Plan, outcome: ActOutcome) -> None:
        """Marks of what was done are gone; what was refused keeps them."""
        for screen in self.screen_stack:
            if isinstance(screen, CockpitScreen):
                screen.acted(plan, outcome)

    def everywhere(self, action: str) -> None:
        if action.startswith("tab."):
            self._result = line()  # what was said belongs to the screen that is left
            self._bars()
            self.go(Place(action.removeprefix("tab.")))
        else:
            self._everywhere.do(action)

    def obey(self, command: Command) -> None:
        self._obeying.obey(command)

    def toggle_freeze(self) -> None:
        if self.memory.past is not None:
            self.say("this is a recording: there is no live", Tone.WARN)
            return
        if self.travel.away:
            self.travel.now()
            self.link.frozen = False
            self.show_moment()
        else:
            self.link.frozen = not self.link.frozen
        self.poller.poke()

    def toggle_absolute(self) -> None:
        self._absolute = not self._absolute
        if isinstance(self.screen, CockpitScreen):
            self.screen.receive(self.last_frame)
