"""What the checks look at, read once. A part that cannot be read leaves the others as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeVar

from ultijobs._clock import SYSTEM_CLOCK, Clock
from ultijobs._queue.driver import Driver
from ultijobs._queue.health import Health
from ultijobs._queue.outbox import OutboxDepth, OutboxStore
from ultijobs._queue.views import Count, LeaseRow, Stats, WorkerRow, by_name
from ultijobs.errors import UltijobsError
from ultijobs.inspection.late import late_tasks
from ultijobs.inspection.models import Stuck
from ultijobs.inspection.skew import measured

__all__ = ["Facts", "Part", "Thresholds", "gather"]

T = TypeVar("T")
Part = Literal["health", "detours", "stats", "workers", "leases", "names", "outbox", "tasks"]
_LEASES: Final = 200
_IDLE: Final = frozenset({"gone", "drained"})


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on something is wrong."""

    lapsed: timedelta = timedelta(seconds=5)
    """A lease that lapsed so long ago should have been taken over: workers look every poll."""
    idle_transaction: timedelta = timedelta(seconds=10)
    snapshot: timedelta = timedelta(minutes=1)
    snapshot_urgent: timedelta = timedelta(minutes=15)
    blocked: timedelta = timedelta(seconds=1)
    dead_rows: int = 10_000
    vacuum: timedelta = timedelta(minutes=10)
    connections: float = 0.9
    notify_queue: float = 0.5
    clock: timedelta = timedelta(seconds=1)
    outbox: timedelta = timedelta(seconds=30)


@dataclass(slots=True)
class Facts:
    """None for what was not read: `failed` says why."""

    now: datetime
    """The database's clock."""
    health: Health | None = None
    detours: Sequence[str] | None = None
    stats: Stats | None = None
    workers: Sequence[WorkerRow] | None = None
    leases: Sequence[LeaseRow] | None = None
    names: Mapping[str, Count] | None = None
    outbox: OutboxDepth | None = None
    tasks: Sequence[Stuck] | None = None
    failed: dict[Part, UltijobsError] = field(default_factory=dict[Part, UltijobsError])
    """By part, what kept it from being read."""

    @property
    def live(self) -> list[WorkerRow]:
        """Workers that claim."""
        return [worker for worker in self.workers or () if worker.state not in _IDLE]


async def gather(driver: Driver, clock: Clock = SYSTEM_CLOCK, outbox: OutboxStore | None = None) -> Facts:
    """Reads everything in a dozen bounded statements. Raises only when the database does not tell its time."""
    store = driver.inspect
    facts = Facts(await store.now())
    facts.health = await _part(facts, "health", lambda: measured(store, clock))
    facts.detours = await _part(facts, "detours", store.detours)
    facts.stats = await _part(facts, "stats", store.stats)
    facts.workers = await _part(facts, "workers", store.workers)
    facts.leases = await _part(facts, "leases", lambda: store.leases(limit=_LEASES))
    facts.names = await _part(facts, "names", lambda: _unknown_names(driver, facts))
    facts.outbox = await _part(facts, "outbox", (outbox or driver.outbox).depth)
    facts.tasks = await _part(facts, "tasks", lambda: late_tasks(driver.schedule, facts.now))
    if facts.failed and "health" not in facts.failed:
        # What kept the others from being read may have begun after the first look: by now a lock has waiters.
        facts.health = await _part(facts, "health", lambda: measured(store, clock))
    return facts


async def _unknown_names(driver: Driver, facts: Facts) -> Mapping[str, Count]:
    """Due names of served queues that no worker knows; a queue without workers is a finding of its own."""
    if facts.stats is None or facts.workers is None:
        return {}
    served = [queue.queue for queue in facts.stats.queues if queue.workers and queue.ready.value]
    known = sorted({name for worker in facts.live for name in worker.names})
    return by_name(await driver.inspect.due(queues=served, without=known)) if served else {}


async def _part(facts: Facts, name: Part, read: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await read()
    except UltijobsError as failure:
        facts.failed[name] = failure
        return None
