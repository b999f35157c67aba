"""Rows as inspection shows them, with the reason why one that lives is not running."""

from __future__ import annotations

from datetime import datetime, timedelta

from ultijobs._queue.lanes import capped_name
from ultijobs._queue.steps import StepStatus
from ultijobs._queue.views import JobRow, LeaseRow, WaitingOn, WorkerRow
from ultijobs.memory._rows import Row, Worker, gone
from ultijobs.memory._store import Store

__all__ = ["job_row", "lease_row", "waiting_on", "worker_row"]


def job_row(store: Store, row: Row, now: datetime) -> JobRow:
    return JobRow(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        queue=row.queue,
        state=row.shown_state(now),
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        priority=row.priority,
        idempotency_key=row.idempotency_key,
        tenant_id=row.tenant_id,
        run_at=row.run_at,
        due_at=row.due_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        lease_no=row.lease_no,
        lease_until=row.lease_until,
        worker_id=row.worker_id,
        last_error=row.last_error,
        error_code=row.error_code,
        fingerprint=row.fingerprint,
        stop_reason=row.stop_reason,
        cancel_reason=row.cancel_reason,
        traceparent=row.traceparent,
        enqueued_by=row.enqueued_by,
        code_version=row.code_version,
        running_step=row.running_step,
        progress=row.progress,
        waiting_on=waiting_on(store, row, now),
        behind=row.behind,
        lane=row.lane,
    )


def waiting_on(store: Store, row: Row, now: datetime) -> WaitingOn | None:
    if row.state not in {"ready", "suspended"}:
        return None
    if row.behind is not None:
        return WaitingOn.BEHIND
    return _gate(store, row, now) if row.run_at <= now else _time(store, row)


def _time(store: Store, row: Row) -> WaitingOn:
    """What a row waits for whose time is still to come."""
    if row.state == "ready":
        return WaitingOn.BACKOFF if row.attempt else WaitingOn.DELAY
    waits = any(step.status == StepStatus.WAITING for step in store.steps.get(row.run_id, {}).values())
    return WaitingOn.EVENT if waits else WaitingOn.SLEEP


def _gate(store: Store, row: Row, now: datetime) -> WaitingOn | None:
    """What keeps a due row from being claimed."""
    if store.pause_of(row.queue, now) is not None:
        return WaitingOn.PAUSED
    serving = [worker for worker in store.serving(row.queue, now) if row.name in worker.beat.names]
    if not serving:
        return WaitingOn.NO_WORKER
    room = [worker for worker in serving if worker.beat.free_slots > 0 and row.queue not in worker.beat.full_queues]
    if not room or _no_slot(store, row):
        return WaitingOn.SLOT
    limits = [_limit(worker, row.tenant_id, now) for worker in room]
    return None if None in limits else WaitingOn.TENANT if WaitingOn.TENANT in limits else WaitingOn.RATE


def _no_slot(store: Store, row: Row) -> bool:
    """As many slots of the lane are held as the declaration allows; without one, as there are."""
    name = capped_name(row.lane)
    if name is None:
        return False
    declared = store.catalog.get(("job", name))
    cap = None if declared is None else declared.declaration.get("concurrency")
    return store.slots.taken(name) >= max(1, cap if isinstance(cap, int) else store.slots.made(name))


def _limit(worker: Worker, tenant: str | None, now: datetime) -> WaitingOn | None:
    """What keeps the worker from starting a job of the tenant; what it told may be over by now."""
    wait = worker.beat.limited.get(tenant) if tenant is not None else None
    if wait == 0:
        return WaitingOn.TENANT
    over = wait is None or worker.heartbeat_at + timedelta(milliseconds=wait) <= now
    return None if over else WaitingOn.RATE


def lease_row(row: Row, now: datetime) -> LeaseRow:
    assert row.lease_until is not None
    return LeaseRow(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        queue=row.queue,
        tenant_id=row.tenant_id,
        worker_id=row.worker_id,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        lease_no=row.lease_no,
        running_step=row.running_step,
        started_at=row.started_at,
        lease_until=row.lease_until,
        expired=row.lease_until < now,
        progress=row.progress,
    )


def worker_row(worker: Worker, now: datetime) -> WorkerRow:
    beat = worker.beat
    return WorkerRow(
        worker_id=beat.worker_id,
        instance=beat.instance,
        host=beat.host,
        pid=beat.pid,
        version=beat.version,
        code_version=beat.code_version,
        environment=beat.environment,
        state=_worker_state(worker, now),
        queues=beat.queues,
        names=beat.names,
        concurrency=beat.concurrency,
        running=beat.running,
        free_slots=beat.free_slots,
        started_at=worker.started_at,
        heartbeat_at=worker.heartbeat_at,
        claimed_at=worker.claimed_at,
        settled_at=worker.settled_at,
        stopped_at=worker.stopped_at,
        loop_lag_ms=beat.loop_lag_ms,
        rss_bytes=beat.rss_bytes,
        listening=beat.listening,
        counters=dict(beat.counters),
        full_queues=beat.full_queues,
        limited=dict(beat.limited),
        lease_ms=beat.lease_ms,
    )


def _worker_state(worker: Worker, now: datetime) -> str:
    if worker.stopped_at is not None:
        return "drained"
    if gone(worker, now):
        return "gone"
    if worker.beat.state in {"draining", "drained"}:
        return worker.beat.state
    if worker.beat.wedged:
        return "wedged"
    return "healthy" if worker.beat.running else "idle"
