"""What an exception means for the next attempt: terminal, retryable, or retry after a stated wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from ultijobs._durations import LONGEST
from ultijobs.errors import Retry, UltijobsError

__all__ = ["Classifier", "members", "sole", "stated_wait"]


class Classifier:
    """Classes by code and by exception class; the nearest class of the exception's ancestry decides.

    `table` is the application's: exception classes, or codes of its own, to a retry class. An error class of the
    library's root says it itself; an attribute on an instance does not count.
    """

    def __init__(self, table: Mapping[type[BaseException] | str, Retry] | None = None) -> None:
        self._table: dict[type[BaseException] | str, Retry] = dict(table) if table is not None else {}
        self._known: dict[type[BaseException], Retry | None] = {}

    def of(self, error: BaseException) -> Retry | None:
        """The class of `error`; None means the policy's backoff. A group is terminal when one of its errors is."""
        inner = members(error)
        if inner:
            classes: list[Retry | None] = [self.of(each) for each in inner]
            if "terminal" in classes:
                return "terminal"
            return classes[0] if len(classes) == 1 else None
        kind = type(error)
        if kind not in self._known:
            self._known[kind] = self._look_up(kind)
        return self._known[kind]

    def _look_up(self, kind: type[BaseException]) -> Retry | None:
        for ancestor in kind.__mro__:
            if ancestor in self._table:
                return self._table[ancestor]
            if issubclass(ancestor, UltijobsError):
                if "code" in vars(ancestor) and ancestor.code in self._table:
                    return self._table[ancestor.code]
                own: Retry | None = vars(ancestor).get("retry")
                if own is not None:
                    return own
        return None


def members(error: BaseException) -> tuple[BaseException, ...]:
    """The errors of a group; nothing for any other error."""
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of any error
    return ()


def sole(error: BaseException) -> BaseException:
    """The one error of a group of one, however deep; else `error` itself."""
    while len(inner := members(error)) == 1:
        error = inner[0]
    return error


def stated_wait(error: BaseException, most: timedelta) -> timedelta | None:
    """How long a retry-after error asks to wait, at most `most`; None when what it says cannot be used."""
    error = sole(error)
    if not isinstance(error, UltijobsError):
        return None
    seconds = error.meta.get("retry_after_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if isinstance(seconds, float) and not math.isfinite(seconds):
        return None
    # Compared as numbers first: a whole number may be beyond any float.
    if seconds < 0 or seconds > 10**300:
        return None
    return min(timedelta(seconds=min(seconds, LONGEST.total_seconds())), most)
