"""A line to type into, which may hold text from jobs: a link filters by a name, whatever that name is."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Input

from ultijobs_tui.paint import signs

__all__ = ["Field"]


class Field(Input):
    """Shows what could act on the terminal as one visible sign each; the value itself stays as it is."""

    def _position_to_cell(self, position: int) -> int:
        return cell_len(signs(self.value[:position]))

    @property
    def _value(self) -> Text:
        return Text(signs(self.value), no_wrap=True, overflow="ignore", end="")
