"""Does what was typed after `:`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ultijobs.errors import UltijobsError
from ultijobs.inspection import parse_duration, parse_where
from ultijobs_tui.desk import Place
from ultijobs_tui.grammar import ALONE, VERBS, Command
from ultijobs_tui.link import explain
from ultijobs_tui.narrowing import narrow_to
from ultijobs_tui.screens.ask import AskDialog
from ultijobs_tui.table import Tone
from ultijobs_tui.theme import theme_names
from ultijobs_tui.travel import moment_of

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["Obeying"]

_LEAST_SECONDS: Final = 0.25


class Obeying:
    def __init__(self, app: Cockpit) -> None:
        self._app = app

    def obey(self, command: Command) -> None:
        """What cannot be done is told on the result line."""
        app = self._app
        if not command.argument and command.verb not in ALONE:
            asked, told = VERBS[command.verb]
            app.push_screen(AskDialog(f": {command.verb}", asked.lower(), told), partial(self._answered, command))
            return
        verbs: dict[str, Callable[[str], None]] = {
            "job": app.find,
            "queue": lambda name: app.go(Place("queues", key=name)),
            "worker": lambda name: app.go(Place("workers", key=name)),
            "where": lambda where: self._list("jobs", where),
            "dead": lambda where: self._list("dead", f"state:dead,failed {where}"),
            "tenant": lambda name: narrow_to(app, name) if name else app.narrow(None),
            "at": self._at,
            "theme": self._theme,
            "refresh": self._refresh,
        }
        try:
            verbs[command.verb](command.argument)
        except UltijobsError as error:
            app.say(explain(error), Tone.WARN)

    def _answered(self, command: Command, answer: str | None) -> None:
        if answer is not None:
            self.obey(replace(command, argument=answer))

    def _list(self, view: str, where: str) -> None:
        parse_where(where)
        self._app.go(Place(view, where=where))

    def _at(self, text: str) -> None:
        app = self._app
        at = moment_of(text, app.look().now)
        if at is None:
            app.say(f"at {text}: write a time such as 14:02 or 14:02:11", Tone.WARN)
        elif not app.travel.to(at):
            app.say("nothing earlier is kept", Tone.WARN)
        app.show_moment()

    def _theme(self, name: str) -> None:
        if name in theme_names():
            self._app.theme = name
        else:
            self._app.say(f"there is no theme {name}: {', '.join(theme_names())}", Tone.WARN)

    def _refresh(self, text: str) -> None:
        seconds = parse_duration(text, what="the interval").total_seconds()
        poller = self._app.poller
        poller.budget = replace(poller.budget, interval=max(_LEAST_SECONDS, seconds))
        self._app.say(f"a look every {poller.budget.interval:g} s")
        self._app.poke()
