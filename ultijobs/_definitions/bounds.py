"""How much an application lets happen: limits on starts, sizes of what is stored, how long it is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from ultijobs._definitions import checks
from ultijobs._durations import Duration, parse
from ultijobs._queue.retention import Windows
from ultijobs.errors import Invariant

__all__ = ["Limits", "Rate", "Retention", "Sizes"]


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """At most `count` starts in any window of `per`."""

    count: int
    per: timedelta

    def __init__(self, count: int, /, *, per: Duration) -> None:
        object.__setattr__(self, "count", checks.whole(count, "Rate: count", least=1))
        object.__setattr__(self, "per", parse(per, what="Rate: per", positive=True))


@dataclass(frozen=True, slots=True)
class Limits:
    """How many jobs run at once: in one process, per queue, per tenant; and how often a tenant's jobs start.

    Each worker process counts for itself; what holds for the fleet is `@job(concurrency=…)`. What is at its limit is
    not claimed at all, so it takes no attempt and holds nobody up. Queues named in `fair` give their tenants equal
    turns.
    """

    per_process: int | None = None
    per_queue: Mapping[str, int] = field(default_factory=dict[str, int])
    per_tenant: int | None = None
    tenant_rate: Rate | None = None
    fair: Collection[str] = ()

    def __post_init__(self) -> None:
        for of in ("per_process", "per_tenant"):
            value: Any = getattr(self, of)
            if value is not None:
                checks.whole(value, f"Limits: {of}", least=1)
        queues = checks.mapping(self.per_queue, "Limits: per_queue")
        for queue, most in queues.items():
            checks.whole(most, f"Limits: per_queue[{checks.name(queue, 'Limits: per_queue')!r}]", least=1)
        if self.tenant_rate is not None and not _is(self.tenant_rate, Rate):
            raise Invariant(
                f"Limits: tenant_rate is {self.tenant_rate!r:.100}", fix='set tenant_rate=Rate(3, per="2s")'
            )
        fair = checks.several(self.fair, "Limits: fair")
        object.__setattr__(self, "per_queue", MappingProxyType(queues))
        object.__setattr__(self, "fair", tuple(checks.name(queue, "Limits: fair") for queue in fair))

    def tells_tenants_apart(self, queue: str) -> bool:
        """True when each tenant's jobs of the queue wait in a lane of their own."""
        return self.per_tenant is not None or self.tenant_rate is not None or queue in self.fair


@dataclass(frozen=True, slots=True)
class Sizes:
    """The most bytes of a stored value. Inputs and step outputs beyond are refused, error texts are cut with a mark."""

    input: int = 1_048_576
    output: int = 1_048_576
    error: int = 10_000

    def __post_init__(self) -> None:
        checks.whole(self.input, "Sizes: input", least=1)
        checks.whole(self.output, "Sizes: output", least=1)
        checks.whole(self.error, "Sizes: error", least=200)


@dataclass(frozen=True, slots=True, init=False)
class Retention(Windows):
    """How long ended jobs, published outbox rows, the schedule's ledger and the activity log are kept.

    Workers remove what is over its time; nothing goes earlier. Done and cancelled jobs may stay up to a day longer, so
    that whole days can be dropped at once. The steps and attempts of a run go with its job, events when they expire;
    the ledger of backfills stays. Where several applications share a schema, each time is the longest that any of them
    declares which was seen within 7 days.
    """

    def __init__(
        self,
        done: Duration = "7d",
        cancelled: Duration = "7d",
        failed: Duration = "90d",
        dead: Duration = "90d",
        outbox: Duration = "1d",
        schedule: Duration = "180d",
        activity: Duration = "180d",
    ) -> None:
        given = {
            "done": done,
            "cancelled": cancelled,
            "failed": failed,
            "dead": dead,
            "outbox": outbox,
            "schedule": schedule,
            "activity": activity,
        }
        for of, value in given.items():
            object.__setattr__(self, of, parse(value, what=f"Retention: {of}", positive=True))


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)
