"""What stays when rows move: the cursor on its key, the marks on theirs. Pure; no widget."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Cursor"]


class Cursor:
    """A cursor on a key, over rows that come, go and change places.

    `displaced` is true after its row left and it went to a neighbour by itself, until it is moved by hand: what is
    under it then is not what the operator chose.
    """

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._at: dict[str, int] = {}
        self.key: str | None = None
        self.displaced = False
        self.marks: frozenset[str] = frozenset()

    @property
    def index(self) -> int | None:
        return None if self.key is None else self._at.get(self.key)

    def index_of(self, key: str) -> int | None:
        return self._at.get(key)

    def rows(self, keys: Sequence[str]) -> None:
        """The rows are now these, in this order."""
        if list(keys) == self._keys:
            return
        before, was = self._keys, self.index
        self._keys = list(keys)
        self._at = {key: index for index, key in enumerate(keys)}
        if self.key is None:
            self.key = self._keys[0] if self._keys else None
        elif self.key not in self._at:
            self.key = self._neighbour(before, was)
            self.displaced = self.key is not None

    def choose(self, index: int) -> None:
        """By hand, to the row at `index` or the nearest there is."""
        self.displaced = False
        if self._keys:
            self.key = self._keys[max(0, min(index, len(self._keys) - 1))]

    def forget(self) -> None:
        """Another list follows: the cursor starts at its top."""
        self._keys, self._at, self.key, self.displaced = [], {}, None, False

    def _neighbour(self, before: Sequence[str], was: int | None) -> str | None:
        """The nearest row after the one that left, else the nearest before it."""
        if was is not None:
            for key in (*before[was + 1 :], *reversed(before[:was])):
                if key in self._at:
                    return key
        return self._keys[0] if self._keys else None
