"""Tenants whose due jobs no worker starts, because each that could is at its limit for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from ultijobs import _durations
from ultijobs._queue.views import Count, DueGroup, WorkerRow
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.inspection.filter import format_where
from ultijobs.inspection.models import Stuck, StuckKind

__all__ = ["Held", "held_back", "limit_words", "limited_tenants", "throttled"]

_NAMED = 3
_ABSENT = frozenset({"gone", "drained"})


def limited_tenants(workers: Iterable[WorkerRow], tenant: str | None = None) -> list[str]:
    """Whom some worker starts nothing of at present; of `tenant` alone where one is given."""
    found = {one for worker in workers if worker.state not in _ABSENT for one in worker.limited}
    return sorted(found if tenant is None else found & {tenant})


Held: TypeAlias = tuple[DueGroup, list[WorkerRow]]
"""Jobs of a tenant, and the workers that serve them and start none."""


def held_back(groups: Iterable[DueGroup], workers: Sequence[WorkerRow]) -> list[Held]:
    """The groups of tenants that no worker starts anything of; what some worker may start is left out."""
    found: list[Held] = []
    for group in groups:
        tenant = group.tenant
        serving = [w for w in workers if w.state not in _ABSENT and group.queue in w.queues and group.name in w.names]
        if tenant is not None and serving and all(tenant in w.limited for w in serving):
            found.append((group, serving))
    return found


def throttled(held: Iterable[Held]) -> list[Stuck]:
    """One line per tenant."""
    by_tenant: dict[str, list[Held]] = {}
    for group, serving in held:
        if group.tenant is not None:
            by_tenant.setdefault(group.tenant, []).append((group, serving))
    return [_line(tenant, of_tenant) for tenant, of_tenant in by_tenant.items()]


def _line(tenant: str, held: Sequence[Held]) -> Stuck:
    first, serving = held[0]
    names = list(dict.fromkeys(group.name for group, _ in held))
    more = " …" if len(names) > _NAMED else ""
    cut = any(group.count.kind != "exact" for group, _ in held)
    rated = all(worker.limited[tenant] > 0 for worker in serving)
    words = (
        Term(Field.STATE, Op.IS, ("ready",)),
        Term(Field.TENANT, Op.IS, (tenant,)),
        Term(Field.JOB, Op.IS, tuple(names)),
    )
    return Stuck(
        key=f"tenant:{tenant}",
        kind=StuckKind.THROTTLED,
        severity=0,
        count=Count(sum(group.count.value for group, _ in held), "capped" if cut else "exact"),
        why=f"{limit_words(first.limits, rated=rated)} · tenant {tenant} {', '.join(names[:_NAMED])}{more}",
        since=min(group.oldest for group, _ in held),
        last=max(worker.heartbeat_at for _, workers in held for worker in workers),
        held_by=tenant,
        where=format_where(Where(words)),
        tenant=tenant,
    )


def limit_words(limits: Mapping[str, object], *, rated: bool) -> str:
    """`rate 60/1m` or `5 at once`, as declared; what is not known is not told."""
    match limits:
        case {"tenant_rate": {"count": int() as count, "per_ms": int() as per_ms}} if rated:
            return f"rate {count}/{_durations.render(timedelta(milliseconds=per_ms))}"
        case {"per_tenant": int() as most} if not rated:
            return f"{most} at once"
        case _:
            return "at its rate" if rated else "as many run as may"
