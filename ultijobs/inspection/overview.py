"""What is stuck, from detectors that do not take each other down: one that fails is a line that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from ultijobs._queue.driver import InspectionStore
from ultijobs._queue.schedule import ScheduleStore
from ultijobs._queue.views import Cause, Count, DueGroup, LeaseRow, QueueRow, Stats, WorkerRow, by_name
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.errors import BackfillStalled, UltijobsError
from ultijobs.inspection.filter import format_where
from ultijobs.inspection.late import late_tasks
from ultijobs.inspection.models import Overview, Stuck, StuckKind
from ultijobs.inspection.throttled import held_back, limited_tenants, throttled

__all__ = ["STOPPED", "overview"]

STOPPED: Final = Where((Term(Field.STATE, Op.IS, ("dead", "failed")),))
_URGENT_DEAD: Final = timedelta(hours=1)
_STARVING: Final = timedelta(minutes=1)
_CAUSES: Final = 50
_LEASES: Final = 200
_SHOWN_ERROR: Final = 120
_LATE_OUTBOX: Final = timedelta(seconds=30)

_NONE: Final = Count(0)


@dataclass(slots=True)
class _Facts:
    now: datetime
    stats: Stats
    workers: Sequence[WorkerRow] = ()
    known: bool = True
    """False when the workers could not be read: then nothing is said about who serves what."""
    names: Mapping[str, Count] = field(default_factory=dict[str, Count])
    throttled: Mapping[str, int] = field(default_factory=dict[str, int])
    """Due jobs of tenants at their limit, by queue."""


async def overview(store: InspectionStore, schedule: ScheduleStore, tenant: str | None = None) -> Overview:
    """One incident's picture in at most six statements. Raises only when the counts themselves cannot be read.

    With a `tenant`, its jobs alone: what belongs to no tenant (names without a worker, late tasks) is left out.
    """
    stats = await store.stats(None, tenant)
    facts = _Facts(stats.as_of, stats)
    stuck: list[Stuck] = []

    async def workers() -> list[Stuck]:
        facts.workers = await store.workers()
        return []

    async def causes() -> list[Stuck]:
        where = replace(STOPPED, tenant=tenant)
        return [_dead(cause, facts.now) for cause in await store.causes(where, limit=_CAUSES)]

    async def leases() -> list[Stuck]:
        held = await store.leases(limit=_LEASES)
        return _lapsed([lease for lease in held if lease.expired and tenant in {None, lease.tenant_id}])

    async def due() -> list[Stuck]:
        groups = await _not_claimed(store, facts, tenant)
        facts.names = by_name(groups) if tenant is None else {}
        held = held_back(groups, facts.workers)
        facts.throttled = Counter[str]()
        for group, _ in held:
            facts.throttled[group.queue] += group.count.value
        return [*_unknown_names(groups, facts.names), *throttled(held)]

    async def tasks() -> list[Stuck]:
        return await late_tasks(schedule, facts.now)

    facts.known = await _detect("workers", workers, stuck)
    await _detect("dead letters", causes, stuck)
    await _detect("leases", leases, stuck)
    if facts.known:
        await _detect("what is due and not claimed", due, stuck)
    if tenant is None:
        await _detect("tasks", tasks, stuck)
    stuck += _outbox(stats)
    stuck += [line for queue in stats.queues if (line := _queue(queue, facts)) is not None]
    stuck.sort(key=lambda line: (-line.severity, line.since or facts.now, line.key))
    live = [w for w in facts.workers if w.state not in {"gone", "drained"}]
    return Overview(
        as_of=facts.now,
        stats=stats,
        stuck=stuck,
        running=sum(q.running for q in stats.queues),
        capacity=sum(w.concurrency for w in live),
        workers=len(live),
        oldest_ready_ms=stats.oldest_ready_ms,
        queues=stats.queues,
        unserved_names=facts.names,
        counters={str(w.instance): w.counters for w in live},
    )


async def _detect(what: str, detector: Callable[[], Awaitable[list[Stuck]]], stuck: list[Stuck]) -> bool:
    try:
        stuck += await detector()
    except UltijobsError as exc:
        stuck.append(
            Stuck(
                key=f"detector:{what}",
                kind=StuckKind.FAILED_DETECTOR,
                severity=1,
                count=_NONE,
                why=f"{what}: {exc.cause}",
                since=None,
                last=None,
                held_by=None,
                where=None,
            )
        )
        return False
    return True


async def _not_claimed(store: InspectionStore, facts: _Facts, tenant: str | None) -> list[DueGroup]:
    """Due rows in a queue that is served, of a name that no live worker knows, or of a tenant at its limit."""
    served = [q.queue for q in facts.stats.queues if q.state != "unserved" and q.ready.value]
    known = {name for w in facts.workers if w.state not in {"gone", "drained"} for name in w.names}
    limited = limited_tenants(facts.workers, tenant)
    if not served or (tenant is not None and not limited):
        return []
    return await store.due(queues=served, without=sorted(known), tenants=limited)


def _dead(cause: Cause, now: datetime) -> Stuck:
    words = [Term(Field.STATE, Op.IS, ("dead", "failed"))]
    if cause.stop_reason is not None:
        words.append(Term(Field.REASON, Op.IS, (cause.stop_reason,)))
    if cause.fingerprint is not None:
        words.append(Term(Field.FINGERPRINT, Op.IS, (cause.fingerprint,)))
    severity: Literal[1, 2] = 2 if now - cause.last_at < _URGENT_DEAD else 1
    said = (cause.error or cause.error_code or "no error recorded").partition("\n")[0][:_SHOWN_ERROR]
    return Stuck(
        key=f"dead:{cause.stop_reason}:{cause.fingerprint}",
        kind=StuckKind.BACKFILL if cause.error_code == BackfillStalled.code else StuckKind.DEAD,
        severity=severity,
        count=cause.count,
        why=f"{cause.stop_reason or 'unknown'} · {said}",
        since=cause.first_at,
        last=cause.last_at,
        held_by=None if cause.step is None else f"step {cause.step}",
        where=format_where(Where(tuple(words))),
        queue=max(cause.queues, key=lambda q: cause.queues[q], default=None),
        cause=cause,
    )


def _outbox(stats: Stats) -> list[Stuck]:
    """What was set aside waits for a person; what is staged for long waits for a relay."""
    depth = stats.outbox
    if depth is None:
        return []
    lines = [
        Stuck(
            key="outbox:set-aside",
            kind=StuckKind.OUTBOX,
            severity=2,
            count=depth.set_aside,
            why="set aside: the queue refused them again and again",
            since=depth.oldest_set_aside,
            last=None,
            held_by=None,
            where=None,
        ),
        Stuck(
            key="outbox:late",
            kind=StuckKind.OUTBOX,
            severity=1,
            count=depth.staged,
            why="staged and not taken: no relay runs, or it does not reach the queue",
            since=depth.oldest,
            last=None,
            held_by=None,
            where=None,
        ),
    ]
    late = depth.oldest is not None and stats.as_of - depth.oldest > _LATE_OUTBOX
    return [line for line in lines if line.count.value and (late or line.severity == 2)]  # noqa: PLR2004 - Stuck.severity


def _lapsed(leases: Sequence[LeaseRow]) -> list[Stuck]:
    by_worker: dict[str, list[LeaseRow]] = {}
    for lease in leases:
        by_worker.setdefault(lease.worker_id or "", []).append(lease)
    return [
        Stuck(
            key=f"lease:{worker}",
            kind=StuckKind.LEASE,
            severity=2,
            count=Count(len(held)),
            why="the lease ended and no worker has taken the jobs over",
            since=min(lease.lease_until for lease in held),
            last=max(lease.lease_until for lease in held),
            held_by=worker or None,
            where=format_where(Where((Term(Field.STATE, Op.IS, ("running",)), Term(Field.WORKER, Op.IS, (worker,)))))
            if worker
            else "state:running",
        )
        for worker, held in by_worker.items()
    ]


def _queue(queue: QueueRow, facts: _Facts) -> Stuck | None:
    if not queue.ready.value:
        return None
    since = None if queue.oldest_ready_ms is None else facts.now - timedelta(milliseconds=queue.oldest_ready_ms)
    kind, severity, why = _gate(queue, facts)
    if kind is None:
        return None
    return Stuck(
        key=f"queue:{queue.queue}",
        kind=kind,
        severity=severity,
        count=queue.ready,
        why=why,
        since=queue.paused_at if kind is StuckKind.PAUSED and queue.paused_at is not None else since,
        last=None,
        held_by=queue.paused_by if kind is StuckKind.PAUSED else None,
        where=format_where(Where((Term(Field.STATE, Op.IS, ("ready",)), Term(Field.QUEUE, Op.IS, (queue.queue,))))),
        queue=queue.queue,
    )


def _gate(queue: QueueRow, facts: _Facts) -> tuple[StuckKind | None, Literal[0, 1, 2], str]:
    age = timedelta(milliseconds=queue.oldest_ready_ms or 0)
    if queue.state == "paused":
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        reason = f' "{queue.pause_reason}"' if queue.pause_reason else ""
        return StuckKind.PAUSED, 2, f"PAUSED{by}{reason} · queue {queue.queue}"
    if facts.known and queue.state == "unserved":
        return StuckKind.NO_WORKER, 2, f"no worker serves queue {queue.queue}"
    if age > _STARVING and facts.throttled.get(queue.queue, 0) < queue.ready.value:
        return StuckKind.STARVING, 1, f"queue {queue.queue} is behind · {_busy(queue, facts)}"
    return None, 0, ""


def _busy(queue: QueueRow, facts: _Facts) -> str:
    """Slots belong to workers, which share them among the queues that they serve: all that is in them counts."""
    serving = [w for w in facts.workers if w.state not in {"gone", "drained"} and queue.queue in w.queues]
    if not serving:
        return f"{queue.running} run"
    return f"{sum(w.running for w in serving)} of {sum(w.concurrency for w in serving)} slots busy"


def _unknown_names(groups: Sequence[DueGroup], names: Mapping[str, Count]) -> list[Stuck]:
    return [
        Stuck(
            key=f"name:{name}",
            kind=StuckKind.NO_WORKER,
            severity=2,
            count=count,
            why=f"no worker knows the name {name}",
            since=min(group.oldest for group in groups if group.name == name and group.tenant is None),
            last=None,
            held_by=None,
            where=format_where(Where((Term(Field.STATE, Op.IS, ("ready",)), Term(Field.JOB, Op.IS, (name,))))),
        )
        for name, count in names.items()
    ]
