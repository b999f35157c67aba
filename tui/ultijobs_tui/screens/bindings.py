"""The bindings of a screen: each of its actions, under its default keys."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from ultijobs_tui.keymap import DEFAULT

__all__ = ["bindings_of"]


def bindings_of(view: str) -> list[BindingType]:
    """The bindings of a screen, from the registry."""
    return [
        Binding(",".join(action.keys), f"do('{action.id}')", action.label, show=False, id=action.id)
        for action in DEFAULT.of(view)
    ]
