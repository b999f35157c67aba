"""What a present-function may know about the viewer: the time, the width, how to write."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ultijobs_tui import format as fmt
from ultijobs_tui.keymap import DEFAULT, Keymap

__all__ = ["WIDE", "Look"]

WIDE = 100
"""From this many columns on, a screen shows its side facts."""
ROOMY = 30
"""From this many rows on, there is a panel below the list."""


@dataclass(frozen=True, slots=True)
class Look:
    now: datetime
    """The database's clock at the frame, never the laptop's."""
    width: int = 120
    height: int = 36
    absolute: bool = False
    """Times of day in place of ages."""
    keys: Keymap = DEFAULT

    def key(self, action: str) -> str:
        """The key of an action, as it is written on screens."""
        return self.keys.name(action)

    @property
    def wide(self) -> bool:
        return self.width >= WIDE

    @property
    def roomy(self) -> bool:
        """True when there is room for a panel below the list."""
        return self.height >= ROOMY

    def since(self, at: datetime | None, *, exact: bool = False) -> str:
        """How long ago, or when."""
        if self.absolute:
            return fmt.clock(at, now=self.now)
        return fmt.age_between(at, self.now, exact=exact)

    def until(self, at: datetime | None) -> str:
        return fmt.clock(at, now=self.now) if self.absolute else fmt.due(at, self.now)
