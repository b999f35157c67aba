"""The command palette: every action of the visible screen by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from ultijobs_tui.actions import KeyAction, actions_of, all_keys

__all__ = ["KeyCommands"]


class KeyCommands(Provider):
    async def discover(self) -> Hits:
        for action, run in self._offers():
            yield DiscoveryHit(f"{action.label}  {all_keys(action)}", run, help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, run in self._offers():
            score = matcher.match(f"{action.label} {action.help}")
            if score > 0:
                yield Hit(score, matcher.highlight(action.label), run, help=f"{all_keys(action)}  {action.help}")

    def _offers(self) -> list[tuple[KeyAction, Callable[[], None]]]:
        screen = self.screen
        view = getattr(screen, "VIEW", None)
        if not isinstance(view, str):
            return []
        do = cast("Callable[[str], None]", screen.action_do)  # type: ignore[attr-defined]  # every screen with a VIEW has it
        return [(action, partial(do, action.id)) for action in actions_of(view) if action.group != "move"]
