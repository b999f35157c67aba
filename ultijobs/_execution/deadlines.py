"""When an attempt is over its time: deadlines kept as data, which the keeper compares, so that a job costs no timer."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Final

from ultijobs._execution.body import Body

__all__ = ["Deadlines"]

PATIENCE: Final = 1.0
"""Seconds that a cancelled body may take before the log says that it goes on."""


class Deadlines:
    """The job's own deadline and those of its running steps; all times are of `time.monotonic`.

    A body that is still going `grace` after a deadline is abandoned, and given up after another `overtime`.
    """

    __slots__ = ("_abandonment_told", "_body", "_cancelled_at", "_grace", "_overtime", "_timeout", "_told", "at")

    def __init__(self, timeout: timedelta | None, grace: timedelta, overtime: timedelta, body: Body) -> None:
        self._timeout = timeout
        self._grace = grace
        self._overtime = overtime
        self._told = False
        self._abandonment_told = False
        self._cancelled_at = math.inf
        self.at = math.inf
        self._body = body

    def begin(self) -> None:
        if self._timeout is not None:
            self.at = time.monotonic() + self._timeout.total_seconds()

    def due(self) -> float:
        """When there is something to tell."""
        due = math.inf if self._told else self.at
        runner = self._body.runner
        if runner is not None:
            due = min(due, runner.due())
        if not self._abandonment_told:
            earliest = self._earliest()
            if earliest <= time.monotonic():
                due = min(due, earliest + self._grace.total_seconds())
        return min(due, self._cancelled_at + PATIENCE)

    def passed(self, now: float) -> bool:
        return self.at <= now

    def abandoned(self, now: float) -> bool:
        return self._earliest() + self._grace.total_seconds() <= now

    def given_up(self, now: float) -> bool:
        return self._earliest() + (self._grace + self._overtime).total_seconds() <= now

    def told(self, *, cancelled: bool) -> None:
        """The body was told to end."""
        self._told = True
        if cancelled:
            self._cancelled_at = time.monotonic()

    def newly_abandoned(self, now: float) -> bool:
        """True once, when the body has been abandoned."""
        if self._abandonment_told or not self.abandoned(now):
            return False
        self._abandonment_told = True
        return True

    def newly_ignored(self, now: float) -> bool:
        """True once, when a cancelled body has gone on for a while."""
        if self._cancelled_at + PATIENCE > now:
            return False
        self._cancelled_at = math.inf
        return True

    def _earliest(self) -> float:
        runner = self._body.runner
        return self.at if runner is None else min(self.at, runner.deadline())
