"""Where the operator is in a list that is read page by page. Pure."""

from __future__ import annotations

__all__ = ["Pages"]


class Pages:
    """The cursors of the pages before, the newest last; a page is asked for by the last of them."""

    def __init__(self) -> None:
        self._after: list[str] = []

    @property
    def after(self) -> str | None:
        """What the visible page comes behind; None on the first."""
        return self._after[-1] if self._after else None

    @property
    def number(self) -> int:
        return len(self._after) + 1

    def forth(self, next: str) -> None:
        self._after.append(next)

    def back(self) -> bool:
        """False on the first page."""
        if not self._after:
            return False
        self._after.pop()
        return True

    def restart(self) -> None:
        self._after = []
