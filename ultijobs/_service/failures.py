"""What keeps failing in the same way: told in full once, then ever more rarely, and once more when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Failures", "Telling"]

_LEAST: Final = 1.0
"""Seconds between two lines of one event, and between the first two of one failure."""
_MOST: Final = 60.0
_FORGOTTEN_AFTER: Final = 3_600.0
_KEPT: Final = 200

_Key = tuple[str, str, type[BaseException], tuple[str, int]]


@dataclass(slots=True)
class _Failure:
    since: float
    last: float
    count: int = 0
    lines: int = 0
    next_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Telling:
    """One line's worth: whether it is the first, how often it failed so far, and in how many seconds."""

    first: bool
    count: int
    seconds: float


class Failures:
    """One process's memory of its failing loops; safe from any thread.

    A failure is the same while its class, the line that raised it and what was being done are; texts may differ.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._known: dict[_Key, _Failure] = {}
        self._said: dict[str, float] = {}

    def add(self, event: str, doing: str, error: BaseException) -> Telling | None:
        """Counts it; None when it is not to be told now."""
        with self._lock:
            now = self._clock()
            known = self._of((event, doing, type(error), _place(error)), now)
            known.count += 1
            known.last = now
            if now < known.next_at or now < self._said.get(event, now - _LEAST) + _LEAST:
                return None
            self._said[event] = now
            known.next_at = now + min(_MOST, _LEAST * 2.0 ** min(known.lines, 32))
            known.lines += 1
            return Telling(known.lines == 1, known.count, now - known.since)

    def over(self, doing: str) -> Telling | None:
        """Forgets what failed while `doing` this; answers how often and how long it did, when that was told."""
        if not self._known:
            return None
        with self._lock:
            ended = [self._known.pop(key) for key in list(self._known) if key[1] == doing]
            if not any(each.lines for each in ended):
                return None
            began = min(each.since for each in ended)
            return Telling(False, sum(each.count for each in ended), self._clock() - began)

    def _of(self, key: _Key, now: float) -> _Failure:
        known = self._known.pop(key, None)
        if known is None or now - known.last > _FORGOTTEN_AFTER:
            known = _Failure(now, now)
        self._known[key] = known  # the latest last: of very many the first ones are forgotten
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return known


def _place(error: BaseException) -> tuple[str, int]:
    trace = error.__traceback__
    if trace is None:
        return "", 0
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename, trace.tb_lineno
