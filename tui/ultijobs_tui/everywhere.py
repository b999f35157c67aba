"""What the keys do that work on every screen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ultijobs_tui.narrowing import narrow_by_key
from ultijobs_tui.table import Tone

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["Everywhere"]

_MINUTE: Final = timedelta(minutes=1)
_NOTHING_EARLIER: Final = "nothing earlier is kept"
_NOTHING_LATER: Final = "this is the last moment"


class Everywhere:
    def __init__(self, app: Cockpit) -> None:
        self._app = app

    def do(self, action: str) -> None:
        """By the id of an action that is no screen's own."""
        app = self._app
        handlers: dict[str, Callable[[], object]] = {
            "freeze": app.toggle_freeze,
            "now": self._now,
            "absolute": app.toggle_absolute,
            "time.back": lambda: self._travel(lambda: app.travel.step(-1), _NOTHING_EARLIER),
            "time.forward": lambda: self._travel(lambda: app.travel.step(1), _NOTHING_LATER),
            "time.minute_back": lambda: self._travel(lambda: app.travel.shift(-_MINUTE), _NOTHING_EARLIER),
            "time.minute_forward": lambda: self._travel(lambda: app.travel.shift(_MINUTE), _NOTHING_LATER),
            "quit": app.action_leave,
            "undo": self._undo,
            "commands": app.action_command_palette,
            "help": app.help,
            "export": app.export,
            "tenant": lambda: narrow_by_key(app),
            "back": app.back,
            "history.back": lambda: app.step(-1),
            "history.forward": lambda: app.step(1),
        }
        handlers[action]()

    def _travel(self, move: Callable[[], bool], end: str) -> None:
        before = self._app.travel.at
        if not move() or self._app.travel.at == before:
            self._app.say(end, Tone.WARN)
        self._app.show_moment()

    def _now(self) -> None:
        if self._app.link.frozen:
            self._app.say("frozen: f goes live again", Tone.WARN)
        self._app.poke()

    def _undo(self) -> None:
        if self._app.acting.undoable is not None:
            self._app.act(self._app.acting.undoable)
