"""Marked jobs: kept by id across refreshes and pages, dropped when an act has done them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ultijobs.inspection import JobRow, parse_where
from ultijobs_tui.present.fitting import standing, unfit_for

__all__ = ["Marks"]


class Marks:
    """`all` means the whole filter, also what no page shows."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self.all = False

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._states)

    @property
    def count(self) -> int:
        return len(self._states)

    def toggle(self, row: JobRow) -> None:
        self.all = False
        if self._states.pop(str(row.id), None) is None:
            self._states[str(row.id)] = standing(row)

    def add(self, rows: Iterable[JobRow]) -> None:
        self.all = False
        self._states.update((str(row.id), standing(row)) for row in rows)

    def mark_all(self) -> None:
        self._states, self.all = {}, True

    def clear(self) -> None:
        self._states, self.all = {}, False

    def seen(self, rows: Iterable[JobRow]) -> None:
        """What is marked is judged by its newest state."""
        for row in rows:
            if str(row.id) in self._states:
                self._states[str(row.id)] = standing(row)

    def done(self, keys: Iterable[str], *, all_of_them: bool) -> None:
        """An act has done these; what it refused stays marked."""
        for key in keys:
            self._states.pop(key, None)
        if all_of_them:
            self.all = False

    def words(self, shown: Sequence[str]) -> str:
        """`2 marked (1 not on this page)`."""
        if self.all:
            return "all matching marked"
        if not self._states:
            return ""
        hidden = len(self._states.keys() - set(shown))
        return f"{len(self._states)} marked" + (f" ({hidden} not in this list)" if hidden else "")

    def note(self, shown: Sequence[str]) -> str:
        """What the list does not show of what an act is for."""
        if self.all:
            return "every job that matches is meant, on this page or not"
        hidden = len(self._states.keys() - set(shown))
        return f"{hidden:,} of the {len(self._states):,} marked jobs are not in this list" if hidden else ""

    def unfit(self, act: str, row: JobRow | None, where: str) -> str | None:
        """Why `retry` or `cancel` fits none of what is meant."""
        if self.all:
            if not where:
                return "an empty filter would mean everything: filter first"
            return unfit_for(act, parse_where(where).states() or ())
        standings = set(self._states.values()) or ({standing(row)} if row is not None else set())
        return unfit_for(act, standings) if standings else "no job is under the cursor"
