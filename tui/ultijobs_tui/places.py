"""Where the operator has been: a list with a finger on it, as in a browser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ultijobs_tui.desk import Place

__all__ = ["Places"]

_KEEP: Final = 100


@dataclass(frozen=True, slots=True)
class _Visit:
    place: Place
    linked: bool
    """A row of another screen led here, rather than the screen's own key."""


class Places:
    def __init__(self) -> None:
        self._visits: list[_Visit] = []
        self._at = -1

    @property
    def current(self) -> Place | None:
        return self._visits[self._at].place if self._at >= 0 else None

    @property
    def linked(self) -> bool:
        """Whether a row of another screen led to the current place: one step back is that row."""
        return self._at > 0 and self._visits[self._at].linked

    def visit(self, place: Place) -> None:
        """A new place drops what lay ahead."""
        here = self.current
        if place == here:
            return
        named = place.where is not None or place.key is not None or place.job is not None
        visit = _Visit(place, linked=named and here is not None and here.view != place.view)
        self._visits = [*self._visits[: self._at + 1], visit][-_KEEP:]
        self._at = len(self._visits) - 1

    def leave(self, place: Place) -> None:
        """Where exactly the operator was when leaving: coming back leads to the same row."""
        if self.current is not None and place.view == self.current.view:
            self._visits[self._at] = replace(self._visits[self._at], place=place)

    def step(self, by: int) -> Place | None:
        """The place one back (-1) or forward (1), which then is the current one; None at an end."""
        at = self._at + by
        if not 0 <= at < len(self._visits):
            return None
        self._at = at
        return self._visits[at].place
