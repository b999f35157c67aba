"""Where the operator has been: a list with a finger on it, as in a browser."""

from __future__ import annotations

from typing import Final

from ultijobs_tui.desk import Place

__all__ = ["Places"]

_KEEP: Final = 100


class Places:
    def __init__(self) -> None:
        self._places: list[Place] = []
        self._at = -1

    @property
    def current(self) -> Place | None:
        return self._places[self._at] if self._at >= 0 else None

    def visit(self, place: Place) -> None:
        """A new place drops what lay ahead."""
        if place == self.current:
            return
        self._places = [*self._places[: self._at + 1], place][-_KEEP:]
        self._at = len(self._places) - 1

    def leave(self, place: Place) -> None:
        """Where exactly the operator was when leaving: coming back leads to the same row."""
        if self.current is not None and place.view == self.current.view:
            self._places[self._at] = place

    def step(self, by: int) -> Place | None:
        """The place one back (-1) or forward (1), which then is the current one; None at an end."""
        at = self._at + by
        if not 0 <= at < len(self._places):
            return None
        self._at = at
        return self._places[at]
