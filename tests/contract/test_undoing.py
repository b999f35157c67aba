"""What a retry or a cancel changed comes back as it was, as long as nothing has come of the job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import end, job, put, put_and_take, record, row, step, stop, take, take_one
from ultijobs._ids import new_id
from ultijobs._queue.records import JobState, Outcome, RequeueAsk, UniqueMode
from ultijobs._queue.steps import StepKind, StepStatus
from ultijobs._queue.views import Count, JobRow

HOUR = timedelta(hours=1)


async def retried(harness: Harness, *ids: UUID, **fields: object) -> UUID:
    act = new_id()
    results = await harness.driver.requeue(RequeueAsk(ids, act=act, **fields))  # type: ignore[arg-type]
    assert [result.code for result in results] == [None] * len(ids)
    return act


async def cancelled(harness: Harness, *ids: UUID) -> UUID:
    act = new_id()
    assert [result.code for result in await harness.driver.cancel(ids, reason="wrong one", act=act)] == [None] * len(
        ids
    )
    return act


async def undone(harness: Harness, act: UUID, *ids: UUID, tenant: str | None = None) -> list[str | None]:
    """The codes of the refusals. What is foreseen is what comes."""
    before = [await harness.driver.inspect.job(each) for each in ids]
    foreseen = await harness.driver.undoing.foresee(act, ids, tenant=tenant)
    assert [await harness.driver.inspect.job(each) for each in ids] == before
    answers = await harness.driver.undoing.undo(act, ids, tenant=tenant)
    assert answers == foreseen
    assert [answer.done for answer in answers] == [answer.code is None for answer in answers]
    return [answer.code for answer in answers]


async def same(harness: Harness, before: JobRow) -> bool:
    now = await harness.driver.inspect.now()
    return await row(harness, before.id) == replace(before, updated_at=now)


@pytest.mark.parametrize("state", [JobState.DEAD, JobState.FAILED, JobState.CANCELLED, JobState.DONE])
async def test_a_job_whose_retry_is_undone_is_what_it_was_with_its_steps_and_attempts(
    harness: Harness, state: JobState
) -> None:
    claimed = await put_and_take(harness, idempotency_key="k", tenant_id="acme")
    await record(harness, step(claimed, "load"))
    if state is JobState.CANCELLED:
        await harness.driver.cancel([claimed.id], reason="too late")
    else:
        outcome = {JobState.DONE: Outcome.OK, JobState.DEAD: Outcome.DEAD, JobState.FAILED: Outcome.FAILED}[state]
        await end(harness, claimed, outcome)
    before, store = await row(harness, claimed.id), harness.driver.inspect
    steps, attempts = await store.steps(before.run_id), await store.attempts(before.run_id)
    await harness.advance(HOUR)
    act = await retried(harness, before.id, allow_done=True)
    assert await harness.driver.undoing.jobs(act) == [before.id]
    assert (await harness.driver.undoing.count(act)).value == 1
    await harness.advance(HOUR)
    assert await undone(harness, act, before.id) == [None]
    assert await same(harness, before)
    assert (await store.steps(before.run_id), await store.attempts(before.run_id)) == (steps, attempts)
    assert await take(harness) == []
    assert await harness.driver.undoing.jobs(act) == []
    assert await undone(harness, act, before.id) == ["X_NOT_UNDOABLE"]


async def test_a_key_is_free_again_and_a_job_that_is_undone_can_be_retried_again(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DEAD, idempotency_key="k")
    assert await undone(harness, await retried(harness, job_id), job_id) == [None]
    twin = await put(harness, idempotency_key="k")
    assert await undone(harness, await cancelled(harness, twin), twin) == [None]
    await end(harness, await take_one(harness))
    await retried(harness, job_id)
    assert (await take_one(harness)).id == job_id


async def test_what_was_claimed_since_is_left_alone_whatever_has_become_of_it(harness: Harness) -> None:
    ids = [await stop(harness, JobState.DEAD) for _ in range(3)]
    act = await retried(harness, *ids)
    running, ended = await take(harness, limit=2)
    await end(harness, ended, Outcome.RETRIED)
    assert await undone(harness, act, *ids) == ["X_NOT_UNDOABLE", "X_NOT_UNDOABLE", None]
    assert [(await row(harness, each)).state for each in ids] == ["running", "ready", "dead"]
    assert await end(harness, running) is not None


async def test_step_records_that_a_retry_dropped_are_gone_and_so_is_the_way_back(harness: Harness) -> None:
    ids: list[UUID] = []
    for _ in range(2):
        claimed = await put_and_take(harness)
        await record(harness, step(claimed, "load"), step(claimed, "charge", position=2))
        await end(harness, claimed, Outcome.DEAD)
        ids.append(claimed.id)
    waiting = await put_and_take(harness)
    await record(
        harness,
        step(
            waiting,
            "paid",
            kind=StepKind.WAIT,
            status=StepStatus.WAITING,
            output=None,
            event="paid",
            wake_in=timedelta(minutes=1),
        ),
    )
    await end(harness, waiting, Outcome.DEAD)
    await harness.advance(HOUR)
    from_step = await retried(harness, ids[0], from_step="load")
    only_step = await retried(harness, ids[1], only_step="charge")
    plain = await retried(harness, waiting.id)
    (first,) = await harness.driver.undoing.foresee(from_step, [ids[0]])
    assert first.cause == f"job {ids[0]} lost 2 step records to the retry, and they are not kept"
    (second,) = await harness.driver.undoing.foresee(only_step, [ids[1]])
    assert second.cause == f"job {ids[1]} lost a step record to the retry, and they are not kept"
    assert await undone(harness, plain, waiting.id) == ["X_NOT_UNDOABLE"]


async def test_of_several_acts_on_a_job_the_last_one_can_be_undone(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DEAD)
    first = await retried(harness, job_id)
    await cancelled(harness, job_id)
    before = await row(harness, job_id)
    last = await retried(harness, job_id)
    assert await harness.driver.undoing.jobs(first) == []
    assert await undone(harness, first, job_id) == ["X_NOT_UNDOABLE"]
    assert await undone(harness, last, job_id) == [None]
    assert await same(harness, before)
    await harness.driver.requeue(RequeueAsk((job_id,)))
    assert await undone(harness, last, job_id) == ["X_NOT_UNDOABLE"]


@pytest.mark.parametrize("delay", [None, timedelta(days=3)])
async def test_a_cancelled_job_that_had_never_started_waits_again_for_its_own_time(
    harness: Harness, delay: timedelta | None
) -> None:
    job_id = await put(harness, delay=delay, priority=3, idempotency_key="k")
    before = await row(harness, job_id)
    await harness.advance(HOUR)
    act = await cancelled(harness, job_id)
    await harness.advance(HOUR)
    assert await undone(harness, act, job_id) == [None]
    assert await same(harness, before)
    (answer,) = await harness.driver.enqueue([job(idempotency_key="k")])
    assert (answer.id, answer.deduped) == (job_id, True)
    assert [claimed.id for claimed in await take(harness)] == ([] if delay else [job_id])


async def test_a_cancelled_job_that_had_started_stays_cancelled(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    assert await undone(harness, await cancelled(harness, claimed.id), claimed.id) == ["X_NOT_UNDOABLE"]
    assert (await row(harness, claimed.id)).state == "cancelled"


@pytest.mark.parametrize("unique", [UniqueMode.LIVE, UniqueMode.RERUN])
async def test_a_cancelled_job_stays_so_when_another_one_has_taken_its_key(
    harness: Harness, unique: UniqueMode
) -> None:
    first = await put(harness, idempotency_key="k", unique=unique)
    act = await cancelled(harness, first)
    twin = await put(harness, idempotency_key="k", unique=unique)
    (answer,) = await harness.driver.undoing.foresee(act, [first])
    assert (answer.code, answer.meta) == ("X_JOB_DUPLICATE", {"existing_id": str(twin)})
    assert await undone(harness, act, first) == ["X_JOB_DUPLICATE"]
    await end(harness, await take_one(harness))
    assert await undone(harness, act, first) == [None]


async def test_an_act_is_remembered_for_a_day(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DEAD)
    act = await retried(harness, job_id)
    await harness.advance(timedelta(days=1, seconds=1))
    assert await undone(harness, act, job_id) == ["X_NOT_UNDOABLE"]
    assert await harness.driver.undoing.jobs(act) == [job_id]
    await harness.driver.housekeep()
    assert await harness.driver.undoing.jobs(act) == []
    assert (await take_one(harness)).id == job_id


async def test_jobs_of_another_tenant_and_those_that_an_act_did_not_touch_are_refused(harness: Harness) -> None:
    theirs, other = [await stop(harness, JobState.DEAD, tenant_id="acme") for _ in range(2)]
    act = await retried(harness, theirs)
    assert await undone(harness, act, theirs, tenant="globex") == ["X_JOB_UNKNOWN"]
    assert await undone(harness, act, other, new_id()) == ["X_NOT_UNDOABLE"] * 2
    assert await harness.driver.undoing.jobs(act, after=theirs) == []
    assert await undone(harness, act, theirs, tenant="acme") == [None]


@pytest.mark.parametrize("kind", ["retry", "cancel"])
async def test_of_an_act_on_jobs_of_several_tenants_one_of_them_sees_its_own(harness: Harness, kind: str) -> None:
    tenants = ("acme", "globex", None)
    if kind == "retry":
        mine, theirs, nobody = [await stop(harness, JobState.DEAD, tenant_id=one) for one in tenants]
        act = await retried(harness, mine, theirs, nobody)
    else:
        mine, theirs, nobody = [await put(harness, tenant_id=one) for one in tenants]
        act = await cancelled(harness, mine, theirs, nobody)
    store = harness.driver.undoing
    assert await store.jobs(act, tenant="acme") == [mine]
    assert await store.jobs(act, tenant="globex") == [theirs]
    assert (await store.count(act, tenant="acme")).value == 1
    assert (await store.count(act, tenant="initech"), await store.jobs(act, tenant="initech")) == (Count(0), [])
    assert await store.jobs(act) == sorted([mine, theirs, nobody])
