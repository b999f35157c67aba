"""How a tone looks: the component classes that the theme colours."""

from __future__ import annotations

from typing import ClassVar, Protocol, cast

from rich.style import Style
from textual.app import App
from textual.css.styles import RenderStyles
from textual.widget import Widget

from ultijobs_tui.paint import ASCII
from ultijobs_tui.table import Tone

__all__ = ["TonedApp", "ascii_of", "ground_of", "style_of"]


class Letters(Protocol):
    """The part of the cockpit that says how glyphs are written."""

    ascii_only: bool


class TonedApp(App[int]):
    """Holds the component classes once for every widget: each of them costs a match against the whole style sheet."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{name}" for name in (*Tone, "cursor", "away", "head", "mark")}

    def __init__(self) -> None:
        super().__init__()
        self._toned: dict[str, tuple[RenderStyles, Style]] = {}

    def tone(self, name: str) -> Style:
        """The style of a tone; it has a background only where the theme gives it one."""
        styles = self.get_component_styles(f"tone--{name}")
        known = self._toned.get(name)
        if known is None or known[0] is not styles:
            known = self._toned[name] = (styles, _own(styles))
        return known[1]


def _own(styles: RenderStyles) -> Style:
    whole = styles.rich_style
    ground = whole.bgcolor if styles.has_rule("background") else None
    return Style(color=whole.color, bgcolor=ground) + styles.text_style


def style_of(widget: Widget, tone: str) -> Style:
    """The style of a tone, to be added to the widget's own."""
    return cast("TonedApp", widget.app).tone(tone)  # pyright: ignore[reportUnknownMemberType]


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
