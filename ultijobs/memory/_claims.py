"""Handing rows to workers, and taking them back from those that vanished."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nsmallest
from uuid import UUID

from ultijobs._queue.claims import Allowance, ClaimAsk, ClaimedJob, CrashPolicy, Reaped
from ultijobs._queue.lanes import Division, capped_name, lane_of, tenant_of
from ultijobs._queue.records import JobState, Outcome, StopReason, UniqueMode
from ultijobs._queue.telling import SignalKind
from ultijobs.memory._rows import Row
from ultijobs.memory._store import Store
from ultijobs.memory._waiting import Stream

__all__ = ["any_lapsed", "claim", "file", "next_due", "reap"]

_LEASE_LOST = "X_JOB_LEASE_LOST"
_MAX_ATTEMPTS = "X_JOB_MAX_ATTEMPTS"


def claim(store: Store, ask: ClaimAsk) -> list[ClaimedJob]:
    now = store.now()
    queues = [queue for queue in ask.queues if store.pause_of(queue, now) is None]
    division = Division(ask, store.waiting.streams(queues, now), store.turns)
    taken: list[ClaimedJob] = []
    while (found := division.next()) is not None:
        got: list[ClaimedJob] = []
        for stream, most, bare in zip(found.streams, found.most, found.bare, strict=True):
            free = division.free(stream.queue) - sum(job.queue == stream.queue for job in got)
            limit = min(most, free, division.limit - len(got))
            got += _from(store, stream, ask, now, limit=limit, bare=bare, blocked=found.blocked)
        division.took(found, got)
        taken += got
    return sorted(taken, key=_claim_order)


def next_due(
    store: Store, queues: Sequence[str], names: Sequence[str], caps: Collection[str], tenants: Allowance | None
) -> timedelta | None:
    now = store.now()
    # Behind what is due and held back, nothing new comes up by the time alone.
    held = {
        (row.queue, row.lane, row.priority)
        for row in store.jobs.values()
        if row.claimable and row.run_at <= now and _may_be_held(row.lane, tenants)
    }
    dues: list[datetime] = []
    for row in store.jobs.values():
        if not row.claimable or row.queue not in queues or not _may_come(row, names, caps):
            continue
        if (row.queue, row.lane, row.priority) in held:
            continue
        pause = store.pause_of(row.queue, now)
        if pause is None:
            dues.append(row.run_at)
        elif pause.resume_at is not None:
            dues.append(max(row.run_at, pause.resume_at))
    return None if not dues else max(min(dues) - now, timedelta(0))


def _may_come(row: Row, names: Sequence[str], caps: Collection[str]) -> bool:
    """True when the row lies where its name belongs."""
    return row.name in names and capped_name(row.lane) == (row.name if row.name in caps else None)


def _may_be_held(lane: str, tenants: Allowance | None) -> bool:
    """True for a lane that a cap or an allowance may hold back."""
    tenant = tenant_of(lane)
    return capped_name(lane) is not None or (tenants is not None and tenant is not None and tenants.of(tenant) <= 0)


def any_lapsed(store: Store) -> bool:
    now = store.now()
    rows = any(_lapsed(row, now) or row.state == "delayed" for row in store.jobs.values())
    return rows or bool(_orphaned(store)) or store.slots.any_over(now)


def file(
    store: Store, queues: Sequence[str], names: Sequence[str], caps: Collection[str], apart: Collection[str]
) -> int:
    moved = 0
    for row in store.jobs.values():
        if not row.claimable or row.queue not in queues:
            continue
        # A cap of a name that is not ours is not ours to judge.
        capped = row.name in caps if row.name in names else capped_name(row.lane) is not None
        tenant = row.tenant_id if row.queue in apart else None
        lane = lane_of(row.name, tenant_of(row.lane) or tenant, capped=capped, by_tenant=True)
        if lane != row.lane:
            row.lane = lane
            store.waiting.add(row)
            moved += 1
    return moved


def reap(store: Store, policies: Mapping[str, CrashPolicy], limit: int) -> list[Reaped]:
    now = store.now()
    lapsed = [row for row in store.jobs.values() if _lapsed(row, now)]
    reaped = [_end_claim(store, row, policies.get(row.name), now) for row in nsmallest(limit, lapsed, key=_by_lapse)]
    for ahead in _orphaned(store):
        store.free_twins(ahead, now)
    store.slots.sweep(now)
    for row in [row for row in store.jobs.values() if row.state == "delayed"]:
        _make_ready(store, row, now)
    return reaped


def _lapsed(row: Row, now: datetime) -> bool:
    return row.lease_until < now if row.lease_until is not None else row.state == "running"


def _make_ready(store: Store, row: Row, now: datetime) -> None:
    """The store knows no state `delayed`: a row of that word is ready when it is due, one for each key."""
    if row.key is not None and row.key_held and any(twin.key_held for twin in store.live_twins(row.key, row.id)):
        return
    row.state = "ready"
    row.run_at = max(row.run_at, now)
    row.updated_at = now
    store.waiting.add(row)


def _orphaned(store: Store) -> list[UUID]:
    """Whom twins wait behind although it has ended."""
    return [ahead for ahead in store.followers if (row := store.jobs.get(ahead)) is None or not row.live]


def _claim_order(job: ClaimedJob) -> tuple[int, datetime, UUID]:
    return (-job.priority, job.run_at, job.id)


def _by_lapse(row: Row) -> tuple[bool, datetime, UUID]:
    return (row.lease_until is None, row.lease_until or row.updated_at, row.id)


def _from(
    store: Store, stream: Stream, ask: ClaimAsk, now: datetime, *, limit: int, bare: bool, blocked: Sequence[str]
) -> list[ClaimedJob]:
    capped = capped_name(stream.lane)
    names = [name for name in ask.names if name not in ask.caps] if capped is None else [capped]
    slots = None if capped is None else store.slots.free(capped, ask.caps[capped])
    rows = store.waiting.take(
        stream,
        names,
        now=now,
        limit=limit if slots is None else min(limit, len(slots)),
        skip=ask.skip,
        blocked=blocked,
        bare=bare,
    )
    jobs = [_take(store, row, ask, now) for row in rows]
    for slot, row in zip(slots or (), rows, strict=False):
        store.slots.take(slot, row)
    return jobs


def _take(store: Store, row: Row, ask: ClaimAsk, now: datetime) -> ClaimedJob:
    row.state = "running"
    row.attempt += 1
    row.claims += 1
    row.lease_no = store.next_lease_no()
    row.lease_until = now + ask.lease
    row.worker_id = ask.worker_id
    row.started_at = now
    row.updated_at = now
    row.progress = None
    row.key_held = row.key_held and row.unique is UniqueMode.LIVE
    return ClaimedJob(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        queue=row.queue,
        tenant_id=row.tenant_id,
        lane=row.lane,
        priority=row.priority,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        claims=row.claims,
        has_steps=row.claims > 1 or bool(store.steps.get(row.run_id)),
        lease_no=row.lease_no,
        input=row.input,
        unique=row.unique,
        run_at=row.run_at,
        created_at=row.created_at,
        claimed_at=now,
        enqueued_by=row.enqueued_by,
        traceparent=row.traceparent,
        code_version=row.code_version,
    )


def _end_claim(store: Store, row: Row, policy: CrashPolicy | None, now: datetime) -> Reaped:
    policy = policy or CrashPolicy(row.name, "exponential", timedelta(seconds=1), timedelta(hours=1))
    code = row.abandoned or _LEASE_LOST
    worker = row.worker_id
    noted = row.lease_no not in store.attempts.get(row.run_id, {})
    store.record_attempt(
        row,
        Outcome.LOST,
        now,
        worker_id=worker,
        error_code=code,
        error=f"{code}: the lease of {worker} lapsed in attempt {row.attempt} of {row.max_attempts}",
    )
    row.fingerprint = None
    if row.attempt >= row.max_attempts:
        row.stop_reason = StopReason.LEASE_EXHAUSTED
        row.error_code = _MAX_ATTEMPTS
        row.last_error = _exhausted(store, row)
        store.finish(row, JobState.DEAD if policy.dead_letter else JobState.FAILED, now)
    else:
        row.state = "ready"
        row.error_code = code
        row.last_error = f"{code}: the lease of {worker} lapsed in attempt {row.attempt} of {row.max_attempts}"
        # The backoff counts from the lapse, whenever it is noticed.
        row.run_at = max(now, (row.lease_until or now) + _back_off(policy, max(row.attempt, 1)))
        row.updated_at = now
        row.release()
        store.waiting.add(row)
        store.signals.send(SignalKind.QUEUE, row.queue)
    row.worker_id = None
    return Reaped(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        queue=row.queue,
        lease_no=row.lease_no,
        attempt=row.attempt,
        worker_id=worker,
        state=JobState(row.shown_state(now)),
        noted=noted,
    )


def _exhausted(store: Store, row: Row) -> str:
    lost = [a.worker_id for a in store.attempts[row.run_id].values() if a.outcome == Outcome.LOST and a.worker_id]
    return f"{_MAX_ATTEMPTS}: attempt {row.attempt} of {row.max_attempts} took down {', '.join(dict.fromkeys(lost))}"


def _back_off(policy: CrashPolicy, attempt: int) -> timedelta:
    factor = 1
    if policy.backoff == "linear":
        factor = attempt
    elif policy.backoff == "exponential":
        factor = 1 << (attempt - 1)
    # Compared by division: a timedelta overflows long before the cap could be applied.
    if policy.delay and factor > policy.max_delay / policy.delay:
        return policy.max_delay
    return policy.delay * factor
