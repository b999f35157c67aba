"""Numbers over all rows: totals, queues, causes. In memory every count is exact, up to the cap asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.steps import StepStatus
from ultijobs._queue.views import Cause, Count, DueGroup, QueueRow, Stats, Tally
from ultijobs._queue.where import Field, Where
from ultijobs.memory._filters import matches
from ultijobs.memory._rows import Row
from ultijobs.memory._store import Store

__all__ = ["causes", "count", "due", "queues", "stats", "tally"]

_SAMPLES = 3


def count(store: Store, where: Where, cap: int) -> Count:
    now = store.now()
    found = 0
    for row in store.rows():
        if matches(store, row, where, now):
            found += 1
            if found > cap:
                return Count(cap, "capped")
    return Count(found)


def stats(store: Store, queue: str | None, tenant: str | None) -> Stats:
    now = store.now()
    seen = [
        row
        for row in store.rows()
        if (queue is None or row.queue == queue) and (tenant is None or row.tenant_id == tenant)
    ]
    states = Counter(row.shown_state(now) for row in seen)
    shown = [row for row in _queues(store, seen, now, all_of_them=tenant is None) if queue in {None, row.queue}]
    ages = [row.oldest_ready_ms for row in shown if row.oldest_ready_ms is not None]
    return Stats(
        queues=shown,
        totals={state.value: Count(states[state.value]) for state in JobState},
        oldest_ready_ms=max(ages, default=None),
        as_of=now,
    )


def queues(store: Store) -> list[QueueRow]:
    return _queues(store, store.rows(), store.now(), all_of_them=True)


def _queues(store: Store, rows: Iterable[Row], now: datetime, *, all_of_them: bool) -> list[QueueRow]:
    by_queue: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.id in store.jobs:
            by_queue[row.queue].append(row)
    names = set(by_queue)
    if all_of_them:
        names.update(queue for queue in store.pauses if store.pause_of(queue, now) is not None)
        names.update(q for w in store.live_workers(now) if w.beat.state == "running" for q in w.beat.queues)
        names.update(entry.queue for entry in store.catalog.values() if entry.queue is not None)
    return [_queue_row(store, name, by_queue.get(name, []), now) for name in sorted(names)]


def _queue_row(store: Store, queue: str, rows: list[Row], now: datetime) -> QueueRow:
    states = Counter(row.shown_state(now) for row in rows)
    due = [row.due_at for row in rows if row.shown_state(now) == "ready"]
    pause = store.pause_of(queue, now)
    serving = store.serving(queue, now)
    return QueueRow(
        queue=queue,
        state="paused" if pause else "running" if serving else "unserved",
        ready=Count(states["ready"]),
        delayed=Count(states["delayed"]),
        running=states["running"],
        suspended=Count(states["suspended"]),
        dead=Count(states["dead"]),
        oldest_ready_ms=int((now - min(due)).total_seconds() * 1000) if due else None,
        capacity=sum(worker.beat.concurrency for worker in serving),
        workers=len(serving),
        paused_at=pause.at if pause else None,
        paused_by=pause.by if pause else None,
        pause_reason=pause.reason if pause else None,
        resume_at=pause.resume_at if pause else None,
    )


def due(
    store: Store, queues: Sequence[str], without: Sequence[str], tenants: Sequence[str], limit: int
) -> list[DueGroup]:
    now = store.now()
    groups: dict[tuple[str, str, str | None], list[datetime]] = defaultdict(list)
    for row in store.jobs.values():
        waits = row.state in {"ready", "suspended"} and row.behind is None and row.run_at <= now
        if not waits or row.queue not in queues:
            continue
        if row.name not in without:
            groups[row.name, row.queue, None].append(row.due_at)
        elif row.tenant_id in tenants:
            groups[row.name, row.queue, row.tenant_id].append(row.due_at)
    found = [
        DueGroup(queue, name, tenant, Count(len(times)), min(times), {} if tenant is None else _limits(store, name))
        for (name, queue, tenant), times in groups.items()
    ]
    found.sort(key=lambda one: (-one.count.value if one.tenant else 0, one.name.encode(), one.queue, one.tenant or ""))
    return [*[one for one in found if one.tenant is None][:limit], *[one for one in found if one.tenant][:limit]]


def _limits(store: Store, name: str) -> Mapping[str, object]:
    entry = store.catalog.get(("job", name)) or store.catalog.get(("backfill", name))
    limits = None if entry is None else entry.declaration.get("limits")
    return cast("dict[str, object]", limits) if isinstance(limits, dict) else {}


def tally(store: Store, where: Where, by: Field, limit: int) -> list[Tally]:
    now = store.now()
    groups: dict[str | None, list[Row]] = defaultdict(list)
    for row in store.jobs.values():
        if matches(store, row, where, now):
            value = {Field.TENANT: row.tenant_id, Field.QUEUE: row.queue, Field.JOB: row.name}[by]
            groups[value].append(row)
    found: list[Tally] = []
    for value, rows in groups.items():
        times = [row.finished_at or row.due_at for row in rows]
        states = Counter(row.shown_state(now) for row in rows)
        found.append(Tally(value, Count(len(rows)), states, min(times), max(times)))
    found.sort(key=lambda one: (-one.count.value, one.value is None, one.value))
    return found[:limit]


def causes(store: Store, where: Where, limit: int) -> list[Cause]:
    now = store.now()
    groups: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in store.jobs.values():
        if row.state in {"dead", "failed"} and matches(store, row, where, now):
            groups[row.stop_reason, row.fingerprint].append(row)
    found = [_cause(store, reason, fingerprint, rows) for (reason, fingerprint), rows in groups.items()]
    found.sort(key=lambda cause: (-cause.count.value, -cause.last_at.timestamp(), cause.sample))
    return found[:limit]


def _cause(store: Store, reason: str | None, fingerprint: str | None, rows: list[Row]) -> Cause:
    rows.sort(key=lambda row: (row.finished_at or row.updated_at, row.id), reverse=True)
    newest = rows[0]
    times = [row.finished_at or row.updated_at for row in rows]
    return Cause(
        stop_reason=reason,
        fingerprint=fingerprint,
        error_code=newest.error_code,
        error=newest.last_error,
        count=Count(len(rows)),
        first_at=min(times),
        last_at=max(times),
        jobs=Counter(row.name for row in rows),
        queues=Counter(row.queue for row in rows),
        tenants=len({row.tenant_id for row in rows if row.tenant_id is not None}),
        step=_failing_step(store, newest),
        sample=tuple(row.id for row in rows[:_SAMPLES]),
        retried=sum(
            row.fingerprint == fingerprint and row.state not in {"dead", "failed"} and _stops(store, row) > 0
            for row in store.jobs.values()
        ),
        died_again=sum(_stops(store, row) > 1 for row in rows),
    )


def _failing_step(store: Store, row: Row) -> str | None:
    failed = [s for s in store.steps.get(row.run_id, {}).values() if s.status == StepStatus.FAILED]
    return max(failed, key=lambda s: s.position).name if failed else None


def _stops(store: Store, row: Row) -> int:
    """How often the run stopped before: attempts that ended as dead or failed."""
    ended = store.attempts.get(row.run_id, {}).values()
    return sum(attempt.outcome in {Outcome.DEAD, Outcome.FAILED} for attempt in ended)
