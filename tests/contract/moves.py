"""The few moves that most cases begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.contract.harness import Harness
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat, BeatAnswer, ClaimAsk, ClaimedJob, CrashPolicy, Settlement, Verdict
from ultijobs._queue.records import JobState, NewJob, Outcome, RequeueAsk, StopReason
from ultijobs._queue.steps import StepAnswer, StepKind, StepStatus, StepWrite
from ultijobs._queue.views import JobRow

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=30)
POLICY = CrashPolicy("charge", "exponential", SECOND, timedelta(hours=1))


def job(name: str = "charge", **fields: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "name": name, "input": "null", **fields})


async def put(harness: Harness, name: str = "charge", **fields: Any) -> UUID:
    """A job of its own, by its id."""
    (answer,) = await harness.driver.enqueue([job(name, **fields)])
    assert not answer.deduped
    return answer.id


def ask(
    *names: str,
    queues: dict[str, int] | None = None,
    limit: int = 100,
    worker: str = "w-1",
    lease: timedelta = LEASE,
    skip: frozenset[UUID] = frozenset(),
) -> ClaimAsk:
    return ClaimAsk(worker, queues or {"default": 100}, names or ("charge",), limit, lease, skip)


async def take(harness: Harness, *names: str, **fields: Any) -> list[ClaimedJob]:
    return await harness.driver.claim(ask(*names, **fields))


async def take_one(harness: Harness, *names: str, **fields: Any) -> ClaimedJob:
    (claimed,) = await take(harness, *names, **fields)
    return claimed


async def put_and_take(harness: Harness, name: str = "charge", **fields: Any) -> ClaimedJob:
    """A new job, running."""
    await put(harness, name, **fields)
    return await take_one(harness, name, queues={fields.get("queue", "default"): 1})


def ending(claimed: ClaimedJob, outcome: Outcome, **fields: Any) -> Settlement:
    if outcome in {Outcome.DEAD, Outcome.FAILED}:
        fields = {"stop_reason": StopReason.TERMINAL, "error_code": "X_BROKEN", "error": "X_BROKEN: no", **fields}
    return Settlement(
        **{
            "id": claimed.id,
            "run_id": claimed.run_id,
            "lease_no": claimed.lease_no,
            "outcome": outcome,
            "attempt": claimed.attempt,
            "worker_id": "w-1",
            "queue": claimed.queue,
            "unique": claimed.unique,
            "lane": claimed.lane,
            **fields,
        }
    )


async def end(harness: Harness, claimed: ClaimedJob, outcome: Outcome = Outcome.OK, **fields: Any) -> Verdict:
    (verdict,) = await harness.driver.settle([ending(claimed, outcome, **fields)])
    return verdict


async def stop(harness: Harness, state: JobState, **fields: Any) -> UUID:
    """A new job that has ended as `state`."""
    claimed = await put_and_take(harness, **fields)
    if state is JobState.CANCELLED:
        (done,) = await harness.driver.cancel([claimed.id])
        assert done.done
    else:
        outcome = {JobState.DONE: Outcome.OK, JobState.DEAD: Outcome.DEAD, JobState.FAILED: Outcome.FAILED}[state]
        assert await end(harness, claimed, outcome) is Verdict.SETTLED
    return claimed.id


async def bring_to(harness: Harness, state: JobState, **fields: Any) -> UUID:
    """A new job in any state."""
    if state in {JobState.DONE, JobState.DEAD, JobState.FAILED, JobState.CANCELLED}:
        return await stop(harness, state, **fields)
    if state is JobState.DELAYED:
        return await put(harness, delay=timedelta(hours=1), **fields)
    if state is JobState.READY:
        return await put(harness, **fields)
    claimed = await put_and_take(harness, **fields)
    if state is JobState.SUSPENDED:
        wake = await harness.driver.inspect.now() + timedelta(hours=1)
        assert await end(harness, claimed, Outcome.SUSPENDED, run_at=wake) is Verdict.SETTLED
    return claimed.id


async def row(harness: Harness, id: UUID) -> JobRow:
    found = await harness.driver.inspect.job(id)
    assert found is not None
    return found


async def renew(harness: Harness, *beats: Beat, lease: timedelta = LEASE) -> list[BeatAnswer]:
    link = harness.driver.lease_link()
    await link.open()
    try:
        return await link.renew(beats, lease)
    finally:
        await link.close()


def step(claimed: ClaimedJob, name: str = "one", **fields: Any) -> StepWrite:
    return StepWrite(
        **{
            "job_id": claimed.id,
            "run_id": claimed.run_id,
            "lease_no": claimed.lease_no,
            "name": name,
            "kind": StepKind.RUN,
            "status": StepStatus.COMPLETED,
            "position": 1,
            "output": '"first"',
            **fields,
        }
    )


async def record(harness: Harness, *writes: StepWrite) -> list[StepAnswer]:
    return await harness.driver.record_steps(writes)


async def step_names(harness: Harness, run_id: UUID) -> list[str]:
    return [found.name for found in await harness.driver.inspect.steps(run_id)]


async def retry(harness: Harness, ids: Sequence[UUID], **fields: Any) -> list[tuple[bool, str | None]]:
    results = await harness.driver.requeue(RequeueAsk(tuple(ids), **fields))
    assert [result.id for result in results] == list(ids)
    return [(result.done, result.code) for result in results]


def but(seen: JobRow, **changes: Any) -> JobRow:
    """The same row with some columns changed."""
    return replace(seen, **changes)
