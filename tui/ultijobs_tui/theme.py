"""The two themes of our own; Textual's others can be chosen in the command palette."""

from __future__ import annotations

from typing import Final

from textual.theme import BUILTIN_THEMES, Theme

__all__ = ["THEMES", "theme_names"]

THEMES: Final = (
    Theme(
        name="ultijobs-dark",
        primary="#6cb6ff",
        secondary="#8ddb8c",
        accent="#dcbdfb",
        success="#6bc46d",
        warning="#e0b050",
        error="#ff7b72",
        foreground="#d5dbe3",
        background="#12161b",
        surface="#1a2027",
        panel="#222a33",
        dark=True,
    ),
    Theme(
        name="ultijobs-light",
        primary="#0b5cad",
        secondary="#2f6f3e",
        accent="#7b3fa0",
        success="#1f7a34",
        warning="#8a5a00",
        error="#b3261e",
        foreground="#1d232a",
        background="#fbfcfd",
        surface="#f0f3f6",
        panel="#e3e8ee",
        dark=False,
    ),
)


def theme_names() -> tuple[str, ...]:
    """Ours first; `ansi-dark` and `ansi-light` keep to the terminal's own 16 colours."""
    return (*(theme.name for theme in THEMES), *sorted(BUILTIN_THEMES))
