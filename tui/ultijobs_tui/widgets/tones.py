"""How a tone looks: the component classes that the theme colours."""

from __future__ import annotations

from typing import Protocol, cast

from rich.style import Style
from textual.widget import Widget

from ultijobs_tui.paint import ASCII
from ultijobs_tui.table import Tone


class Letters(Protocol):
    """The part of the cockpit that says how glyphs are written."""

    ascii_only: bool


__all__ = ["TONE_CLASSES", "ascii_of", "ground_of", "style_of"]

TONE_CLASSES = {f"tone--{name}" for name in (*Tone, "cursor", "away", "head", "mark")}


def style_of(widget: Widget, tone: str) -> Style:
    """The style of a tone on the widget's own background."""
    return widget.get_component_rich_style(f"tone--{tone}")


def ground_of(widget: Widget, tone: str) -> Style:
    """Only what lies under the text: it leaves each tone its colour."""
    style = style_of(widget, tone)
    return Style(
        bgcolor=style.bgcolor,
        bold=style.bold or None,
        reverse=style.reverse or None,
        underline=style.underline or None,
    )


def ascii_of(widget: Widget, text: str) -> str:
    """`text` with our glyphs as letters where the cockpit was asked for ASCII."""
    letters = getattr(cast("Letters", widget.app), "ascii_only", False)  # pyright: ignore[reportUnknownMemberType]
    return text.translate(ASCII) if letters else text
