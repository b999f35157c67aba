"""The command palette: every action of the visible screen by name, and what can be typed out in full."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.widgets import OptionList

from ultijobs_tui.actions import KeyAction, all_keys
from ultijobs_tui.grammar import VERBS, Command, commands
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.theme import theme_names

__all__ = ["KeyCommands", "Palette"]

_FIRST: Final = 1_000_000.0
"""Before all that merely looks alike: a score has no upper end."""


class Obeys(Protocol):
    """The part of the cockpit that does what was typed."""

    def obey(self, command: Command) -> None: ...


class Palette(CommandPalette):
    """Textual's own, whose list fails on a key for a page while a small terminal leaves it no room for a line."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)


class KeyCommands(Provider):
    async def discover(self) -> Hits:
        for action, run in self._offers():
            yield DiscoveryHit(f"{action.label}  {all_keys(action)}", run, help=action.help)
        for verb, (argument, told) in VERBS.items():
            yield DiscoveryHit(f"{verb} {argument}", partial(self._obey, Command(verb, "", told)), help=told)

    async def search(self, query: str) -> Hits:
        for command in self._typed(query):
            yield Hit(_FIRST, command.text, partial(self._obey, command), help=command.help)
        matcher = self.matcher(query)
        for action, run in self._offers():
            score = matcher.match(f"{action.label} {action.help}")
            if score > 0:
                yield Hit(score, matcher.highlight(action.label), run, help=f"{all_keys(action)}  {action.help}")

    def _obey(self, command: Command) -> None:
        cast("Obeys", self.app).obey(command)  # pyright: ignore[reportUnknownMemberType] - the app is ours

    def _typed(self, query: str) -> list[Command]:
        screen = self.screen
        if not isinstance(screen, CockpitScreen):
            return []
        frame = screen.desk.last_frame
        queues = [queue.queue for queue in frame.overview.queues] if frame and frame.overview else []
        return commands(query, {"queue": queues, "theme": theme_names()})

    def _offers(self) -> list[tuple[KeyAction, Callable[[], None]]]:
        screen = self.screen
        if not isinstance(screen, CockpitScreen):
            return []
        offered = [action for action in screen.keys.of(screen.VIEW) if action.group != "move"]
        return [(action, partial(screen.action_do, action.id)) for action in offered]
