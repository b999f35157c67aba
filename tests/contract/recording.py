"""A driver that notes which methods of the contract were called, so that none goes without a case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ultijobs._queue.backfills import BackfillStore
from ultijobs._queue.driver import Driver, InspectionStore, LeaseLink
from ultijobs._queue.events import EventStore
from ultijobs._queue.moving import MoveStore
from ultijobs._queue.outbox import OutboxStore
from ultijobs._queue.retention import RetentionStore
from ultijobs._queue.schedule import ScheduleStore
from ultijobs._queue.telemetry import TelemetryStore
from ultijobs._queue.undoing import UndoStore

Calls = set[str]

STORES: dict[str, type] = {
    "backfills": BackfillStore,
    "inspect": InspectionStore,
    "events": EventStore,
    "moves": MoveStore,
    "outbox": OutboxStore,
    "retention": RetentionStore,
    "schedule": ScheduleStore,
    "telemetry": TelemetryStore,
    "undoing": UndoStore,
}
"""What a property of a driver offers."""


def contract_methods() -> Calls:
    """`Driver.claim`, `InspectionStore.jobs`, …: everything that the protocols promise."""
    return {
        f"{protocol.__name__}.{name}"
        for protocol in (Driver, LeaseLink, *STORES.values())
        for name in vars(protocol)
        if not name.startswith("_")
    }


def recorded(driver: Driver, calls: Calls, *, before: Callable[[str], None] = lambda _: None) -> Driver:
    """`driver`, with each use of a method noted in `calls` and told to `before`."""
    return cast("Driver", _Recorder(driver, Driver, calls, before))


class _Recorder:
    def __init__(self, target: object, protocol: type, calls: Calls, before: Callable[[str], None]) -> None:
        self._target = target
        self._protocol = protocol
        self._calls = calls
        self._before = before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name not in vars(self._protocol):
            raise AttributeError(f"{name} is not part of {self._protocol.__name__}: no case may use it")
        self._calls.add(f"{self._protocol.__name__}.{name}")
        self._before(name)
        if self._protocol is Driver and name in STORES:
            return _Recorder(found, STORES[name], self._calls, self._before)
        if name == "lease_link":
            return lambda: _Recorder(found(), LeaseLink, self._calls, self._before)
        return found
