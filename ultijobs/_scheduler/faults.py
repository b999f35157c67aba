"""Tasks that could not be dispatched: when each is tried again, and that its failure is told once per occurrence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ultijobs._coalesce import Backoff

__all__ = ["Faults"]

TRIES: Final = Backoff(first=10.0, most=600.0)


@dataclass(slots=True)
class _Fault:
    latest: datetime
    tries: int
    not_before: datetime


class Faults:
    """One scheduler's memory; another that takes the lead over begins without it."""

    def __init__(self) -> None:
        self._faults: dict[str, _Fault] = {}

    def holds_back(self, task: str, latest: datetime | None, now: datetime) -> bool:
        """True until the backoff of a failure is over or a later occurrence is due."""
        fault = self._faults.get(task)
        return (
            fault is not None
            and latest is not None
            and latest.astimezone(UTC) <= fault.latest
            and now < fault.not_before
        )

    def add(self, task: str, latest: datetime, now: datetime) -> bool:
        """Notes a failure; True for the first with this `latest` occurrence, which is the one to tell."""
        fault = self._faults.get(task)
        fresh = fault is None or latest > fault.latest
        tries = 1 if fault is None or fresh else fault.tries + 1
        self._faults[task] = _Fault(latest, tries, now + timedelta(seconds=TRIES.after(tries)))
        return fresh

    def clear(self, task: str) -> None:
        self._faults.pop(task, None)
