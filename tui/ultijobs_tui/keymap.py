"""Which key means what, with the operator's own choices over the registry's."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import combinations
from typing import Final

from textual.keys import KEY_NAME_REPLACEMENTS

from ultijobs.errors import Invariant
from ultijobs_tui.actions import ACTIONS, BY_ID, KEY_NAMES, VIEWS, KeyAction, key_name

__all__ = ["DEFAULT", "Keymap"]

_WRITTEN: Final = {name: key for key, name in KEY_NAMES.items()}
_NAMED: Final = frozenset({
    "space", "tab", "enter", "escape", "home", "end", "insert", "delete", "backspace", "up", "down", "left", "right",
    "pageup", "pagedown", *(f"f{n}" for n in range(1, 13)),
})  # fmt: skip


class Keymap:
    """Every action under its keys. `chosen` has keys by action id, written as screens write them.

    Raises `Invariant` for an action that is not there, a key that no terminal sends, and two actions on one key.
    """

    def __init__(self, chosen: Mapping[str, Sequence[str]] | None = None, *, told: str = "keys") -> None:
        """`told` is where the choices were read, for errors."""
        self._told = told
        self.chosen = {name: self._keys(name, keys) for name, keys in (chosen or {}).items()}
        self.actions = tuple(replace(a, keys=self.chosen.get(a.id, a.keys)) for a in ACTIONS)
        self._by_id = {action.id: action for action in self.actions}
        for first, second in combinations(self.actions, 2):
            self._apart(first, second)

    def __getitem__(self, id: str) -> KeyAction:
        return self._by_id[id]

    def name(self, id: str) -> str:
        """The key of an action, as it is written on screens."""
        return key_name(self._by_id[id])

    def of(self, view: str) -> list[KeyAction]:
        """What works on a screen."""
        return [action for action in self.actions if not action.views or view in action.views]

    def footer(self, view: str) -> list[KeyAction]:
        """What its footer offers, the most wanted first."""
        return sorted((a for a in self.of(view) if a.footer), key=lambda a: -a.footer)

    def tabs(self) -> list[KeyAction]:
        return [action for action in self.actions if action.group == "tabs"]

    def bindings(self) -> dict[str, str]:
        """The choices by action id, as Textual takes them."""
        return {name: ",".join(keys) for name, keys in self.chosen.items()}

    def _keys(self, id: str, written: Sequence[str]) -> tuple[str, ...]:
        if id not in BY_ID:
            near = get_close_matches(id, BY_ID, 1)
            raise Invariant(
                f"{self._told}: there is no action {id!r}", fix=f"write {near[0] if near else 'an id of docs/keys.md'}"
            )
        if not written:
            raise Invariant(f"{self._told}: {id} has no key", fix=f'write {id} = "{key_name(BY_ID[id])}"')
        return tuple(self._key(id, key) for key in written)

    def _key(self, id: str, written: str) -> str:
        key = _WRITTEN.get(written, written)
        if len(key) == 1 and key.isprintable() and not key.isalnum():
            named = unicodedata.name(key, "").lower().replace("-", "_").replace(" ", "_")
            key = KEY_NAME_REPLACEMENTS.get(named, named)
        plain = key.removeprefix("ctrl+")
        known = plain in _NAMED or plain in KEY_NAMES or (len(plain) == 1 and plain.isalnum()) or len(written) == 1
        if not known or not key:
            raise Invariant(
                f"{self._told}: {id}: no terminal sends {written!r}", fix="write one sign, ctrl+LETTER, or f1 to f12"
            )
        return key

    def _apart(self, first: KeyAction, second: KeyAction) -> None:
        shared = set(first.keys) & set(second.keys)
        meet = not first.views or not second.views or set(first.views) & set(second.views)
        if shared and meet:
            key = KEY_NAMES.get(min(shared), min(shared))
            on = ", ".join(VIEWS[view] for view in VIEWS if _on(first, view) and _on(second, view))
            raise Invariant(
                f"{self._told}: {key!r} would be both {first.id} and {second.id} on {on}",
                fix="give one of them another key",
            )


def _on(action: KeyAction, view: str) -> bool:
    return not action.views or view in action.views


DEFAULT: Final = Keymap()
