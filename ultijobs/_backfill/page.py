"""One page of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and where the page behind them begins. Cursors are JSON text."""

    rows: Sequence[Any]
    next: str | None
    """None at the end of the source."""
    last: str | None = None
    """The key of the last row, where the source has keys."""

    def again(self, later: Page) -> bool:
        """True when `later`, read from the same cursor after these rows were handled, brings the same rows."""
        if self.last is not None:
            return later.last == self.last
        if self.next is not None or later.next is not None:
            return later.next == self.next
        return bool(later.rows) and list(later.rows) == list(self.rows)
