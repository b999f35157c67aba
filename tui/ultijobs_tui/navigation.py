"""Ways between screens: tabs, a job on top of them, and back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import ClassVar, Final

from textual.screen import Screen

from ultijobs_tui.desk import Place
from ultijobs_tui.link import explain
from ultijobs_tui.places import Places
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.table import Tone
from ultijobs_tui.windows import WindowsApp

__all__ = ["NavigatingApp"]

_SCREENS: Final = {
    "incident": "IncidentScreen",
    "queues": "QueuesScreen",
    "jobs": "JobsScreen",
    "leases": "LeasesScreen",
    "dead": "DeadScreen",
    "workers": "WorkersScreen",
    "backfills": "BackfillsScreen",
    "tasks": "TasksScreen",
    "outbox": "OutboxScreen",
    "activity": "ActivityScreen",
    "database": "DatabaseScreen",
}


def _screen(view: str) -> Screen[None]:
    """Its module is loaded here, at the first visit: screens that nobody opens cost the start nothing."""
    made: Screen[None] = getattr(import_module(f"ultijobs_tui.screens.{view}"), _SCREENS[view])()
    return made


class NavigatingApp(WindowsApp):
    """Each tab keeps its own stack of screens."""

    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {view: partial(_screen, view) for view in _SCREENS}

    def __init__(self) -> None:
        super().__init__()
        self._places = Places()

    @abstractmethod
    def poke(self) -> None:
        """The visible screen changed: its data is wanted now."""

    def go(self, place: Place) -> None:
        """Opens a place and remembers it."""
        self._leave()
        self._places.visit(place)
        self.call_later(self._open, place)

    async def _open(self, place: Place) -> None:
        if place.job is not None:
            from ultijobs_tui.screens.run import RunScreen  # noqa: PLC0415 - as in _screen

            if not (isinstance(self.screen, RunScreen) and self.screen.job == place.job):
                await self.push_screen(RunScreen(place.job, self.current_mode))
            return
        if place.view not in self.MODES:
            return
        if self.current_mode != place.view:
            await self.switch_mode(place.view)
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        if isinstance(self.screen, CockpitScreen):
            self.screen.arrive(place)
            self.screen.bars()
        self.poke()

    def _leave(self) -> None:
        if isinstance(self.screen, CockpitScreen) and (here := self.screen.place()) is not None:
            self._places.leave(here)

    def step(self, by: int) -> None:
        self._leave()
        place = self._places.step(by)
        if place is not None:
            self.call_later(self._open, place)

    def back(self) -> None:
        if len(self.screen_stack) > 1:
            self.step(-1)
        else:
            self.up()

    def up(self) -> bool:
        """Back to the row that led here; False when none did, or when something else has been looked for since."""
        if not self.leads_up:
            return False
        self.step(-1)
        return True

    @property
    def leads_up(self) -> bool:
        here = self._places.current
        if here is None or not self._places.linked or not isinstance(self.screen, CockpitScreen):
            return False
        return self.screen.filter_text() in {"", here.where}

    def find(self, ref: str) -> None:
        """Opens the job that `ref` means, or tells why not."""
        self.run_worker(self._find(ref), group="find", exit_on_error=False)

    async def _find(self, ref: str) -> None:
        try:
            self.go(Place("run", job=await self.source.find(ref)))
        except Exception as error:  # noqa: BLE001 - told, so that the operator can search
            self.say(explain(error), Tone.BAD)
