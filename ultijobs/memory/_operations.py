"""Queues that pause, workers that report, and what both leave behind: catalogue and activity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityEntry, ActivityRow
from ultijobs._queue.telling import CatalogEntry, SignalKind, WorkerBeat, WorkerOrder
from ultijobs.errors import Invariant
from ultijobs.memory._rows import Pause, Worker
from ultijobs.memory._store import Store

__all__ = [
    "beat",
    "close_activity",
    "confirm_catalog",
    "forget_workers",
    "open_activity",
    "order_worker",
    "pause",
    "publish_catalog",
    "resume",
]

_WORKERS_KEPT = timedelta(days=1)


def pause(store: Store, queue: str, actor: str, reason: str | None, duration: timedelta | None) -> bool:
    now = store.now()
    if store.pause_of(queue, now) is not None:
        return False
    store.pauses[queue] = Pause(now, actor, reason, None if duration is None else now + duration)
    return True


def resume(store: Store, queue: str) -> bool:
    paused = store.pause_of(queue, store.now()) is not None
    store.pauses.pop(queue, None)
    store.signals.send(SignalKind.QUEUE, queue)
    return paused


def order_worker(store: Store, worker_id: str, order: WorkerOrder) -> int:
    told = [worker for worker in store.live_workers(store.now()) if worker.beat.worker_id == worker_id]
    for worker in told:
        worker.control = order
    if told:
        store.signals.send(SignalKind.WORKER, worker_id)
    return len(told)


def beat(store: Store, given: WorkerBeat) -> WorkerOrder:
    now = store.now()
    worker = store.workers.get(given.instance)
    if worker is None:
        worker = Worker(given, started_at=now, heartbeat_at=now)
        store.workers[given.instance] = worker
    worker.beat = replace(given, counters=dict(given.counters))
    worker.heartbeat_at = now
    if given.claimed_ago_ms is not None:
        worker.claimed_at = now - timedelta(milliseconds=given.claimed_ago_ms)
    if given.settled_ago_ms is not None:
        worker.settled_at = now - timedelta(milliseconds=given.settled_ago_ms)
    worker.stopped_at = now if given.state == "stopped" else None
    return worker.control


def forget_workers(store: Store) -> None:
    """Drops the rows of workers that have been silent for a day."""
    limit = store.now() - _WORKERS_KEPT
    for instance in [instance for instance, worker in store.workers.items() if worker.heartbeat_at < limit]:
        del store.workers[instance]


def publish_catalog(store: Store, entries: Sequence[CatalogEntry]) -> None:
    now = store.now()
    for entry in entries:
        kept = replace(entry, declaration=dict(entry.declaration), last_seen=now)
        store.catalog[entry.kind, entry.name] = kept


def confirm_catalog(store: Store, entries: Sequence[CatalogEntry]) -> None:
    now = store.now()
    for entry in entries:
        key = (entry.kind, entry.name)
        if key in store.catalog:
            store.catalog[key] = replace(store.catalog[key], last_seen=now)


def open_activity(store: Store, entry: ActivityEntry) -> UUID:
    activity_id = new_id()
    store.activity[activity_id] = ActivityRow(
        id=activity_id,
        at=store.now(),
        actor=entry.actor,
        source=entry.source,
        action=entry.action,
        target=entry.target,
        reason=entry.reason,
        as_of=entry.as_of,
        matched=entry.matched,
        done=None,
        refused=None,
        failed=None,
        finished_at=None,
        equivalent=entry.equivalent,
        detail=dict(entry.detail),
    )
    return activity_id


def close_activity(store: Store, id: UUID, matched: int, done: int, refused: int, failed: int) -> datetime:
    row = store.activity.get(id)
    if row is None:
        raise Invariant(f"there is no activity {id}", fix="close what open_activity answered")
    now = store.now()
    store.activity[id] = replace(row, matched=matched, done=done, refused=refused, failed=failed, finished_at=now)
    return now
