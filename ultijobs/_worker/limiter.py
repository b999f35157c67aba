"""What one process may start beside what runs in it: over all, by queue, by tenant, and by tenant and time."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ultijobs._definitions.bounds import Limits
from ultijobs._queue.claims import Allowance, ClaimedJob

__all__ = ["Limiter"]

MOST_TOLD: Final = 500
MOST_STARTS: Final = 100_000
"""Starts that count against the rates of all tenants together; of more, the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class _Place:
    queue: str
    tenant: str | None


class Limiter:
    """Counts this process' running jobs and its tenants' latest starts. Nothing is kept of what counts no more."""

    def __init__(self, limits: Limits, *, concurrency: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits: Final = limits
        self._clock: Final = clock
        self._window: Final = 0.0 if limits.tenant_rate is None else limits.tenant_rate.per.total_seconds()
        self._running: Final[dict[int, _Place]] = {}
        self._queues: Final = Counter[str]()
        self._tenants: Final = Counter[str]()
        self._starts: Final[deque[tuple[float, str]]] = deque()
        self._started: Final[dict[str, deque[float]]] = {}
        self.most: Final = min(concurrency, limits.per_process or concurrency)
        self.fair: Final = frozenset(limits.fair)

    def __len__(self) -> int:
        return len(self._running)

    @property
    def free(self) -> int:
        """Jobs that may still start, whatever they are."""
        return self.most - len(self._running)

    def queues(self, order: Sequence[str], most: int) -> dict[str, int]:
        """How many may start of each queue, in the order given."""
        return {queue: min(most, self._left_of_queue(queue)) for queue in order}

    def full_queues(self) -> tuple[str, ...]:
        """Queues at their own limit."""
        return tuple(queue for queue in self._limits.per_queue if self._left_of_queue(queue) <= 0)

    def tenants(self) -> Allowance | None:
        """How many may start of each tenant; None when tenants are not limited."""
        per_tenant, rate = self._limits.per_tenant, self._limits.tenant_rate
        if per_tenant is None and rate is None:
            return None
        self._sweep()
        most = min(n for n in (per_tenant, None if rate is None else rate.count) if n is not None)
        return Allowance(most, {tenant: self._left_of(tenant) for tenant in self._counted()})

    def limited(self) -> dict[str, float | None]:
        """Tenants of whom nothing may start now, and when it may, on the monotonic clock: None when a job ends."""
        self._sweep()
        found: dict[str, float | None] = {}
        for tenant in self._counted():
            if self._left_running(tenant) <= 0:
                found[tenant] = None
            elif self._left_starts(tenant) <= 0:
                found[tenant] = self._started[tenant][0] + self._window
        return found

    def told(self, limited: Mapping[str, float | None]) -> dict[str, int]:
        """What `limited` answered, in milliseconds from now on, 0 until a job ends. Safe from any thread."""
        now = self._clock()
        first = list(limited.items())[:MOST_TOLD]
        return {tenant: 0 if at is None else max(1, int((at - now) * 1000)) for tenant, at in first}

    def opens_at(self) -> float | None:
        """When the rate of a tenant lets it start again whom nothing else holds back; on the monotonic clock."""
        if self._limits.tenant_rate is None:
            return None
        self._sweep()
        full = (starts[0] for tenant, starts in self._started.items() if self._left_starts(tenant) <= 0)
        first = min(full, default=None)
        return None if first is None else first + self._window

    def started(self, jobs: Iterable[ClaimedJob]) -> None:
        now = self._clock()
        for job in jobs:
            self._running[job.lease_no] = _Place(job.queue, job.tenant_id)
            self._queues[job.queue] += 1
            if job.tenant_id is None:
                continue
            if self._limits.per_tenant is not None:
                self._tenants[job.tenant_id] += 1
            if self._limits.tenant_rate is not None:
                self._starts.append((now, job.tenant_id))
                self._started.setdefault(job.tenant_id, deque()).append(now)

    def ended(self, lease_no: int) -> bool:
        """True when something may start now that was held back by this job. A second end of one job is none."""
        place = self._running.pop(lease_no, None)
        if place is None:
            return False
        was_full = self._left_of_queue(place.queue) <= 0
        _less(self._queues, place.queue)
        if place.tenant is not None and place.tenant in self._tenants:
            was_full = was_full or self._left_running(place.tenant) <= 0
            _less(self._tenants, place.tenant)
        return was_full

    def _left_of_queue(self, queue: str) -> int:
        return self._limits.per_queue.get(queue, self.most) - self._queues[queue]

    def _counted(self) -> set[str]:
        return {*self._tenants, *self._started}

    def _left_of(self, tenant: str) -> int:
        return max(0, min(self._left_running(tenant), self._left_starts(tenant)))

    def _left_running(self, tenant: str) -> int:
        most = self._limits.per_tenant
        return self.most if most is None else most - self._tenants[tenant]

    def _left_starts(self, tenant: str) -> int:
        rate = self._limits.tenant_rate
        return self.most if rate is None else rate.count - len(self._started.get(tenant, ()))

    def _sweep(self) -> None:
        """Forgets the starts that the window has left behind."""
        gone = self._clock() - self._window
        while self._starts and (self._starts[0][0] <= gone or len(self._starts) > MOST_STARTS):
            tenant = self._starts.popleft()[1]
            starts = self._started[tenant]
            starts.popleft()
            if not starts:
                del self._started[tenant]


def _less(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
