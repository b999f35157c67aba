"""Retry and cancel: what each state allows, what is kept, and what is refused with which words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    bring_to,
    end,
    job,
    put,
    put_and_take,
    record,
    retry,
    row,
    step,
    step_names,
    stop,
    take,
    take_one,
)
from ultijobs._ids import new_id
from ultijobs._queue.records import LIVE, JobState, Outcome, RequeueAsk, UniqueMode
from ultijobs._queue.steps import StepStatus

HOUR = timedelta(hours=1)
STOPPED = [JobState.DEAD, JobState.FAILED, JobState.CANCELLED]
ENDED = [*STOPPED, JobState.DONE]


# -- retry -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", STOPPED)
async def test_a_stopped_job_starts_over(harness: Harness, state: JobState) -> None:
    job_id = await stop(harness, state, idempotency_key="k")
    attempts = await harness.driver.inspect.attempts(job_id)
    await harness.advance(HOUR)
    now = await harness.driver.inspect.now()
    assert await retry(harness, [job_id]) == [(True, None)]
    seen = await row(harness, job_id)
    assert (seen.state, seen.attempt, seen.run_at, seen.due_at, seen.updated_at) == ("ready", 0, now, now, now)
    assert (seen.stop_reason, seen.cancel_reason, seen.finished_at) == (None, None, None)
    assert (seen.lease_until, seen.worker_id, seen.run_id) == (None, None, job_id)
    assert await harness.driver.inspect.attempts(job_id) == attempts
    claimed = await take_one(harness)
    assert (claimed.id, claimed.attempt, claimed.claims) == (job_id, 1, 2)
    await end(harness, claimed)
    assert (await row(harness, job_id)).state == "done"


async def test_a_retried_job_holds_its_key_again(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DEAD, idempotency_key="k")
    await retry(harness, [job_id])
    (answer,) = await harness.driver.enqueue([job(idempotency_key="k")])
    assert (answer.id, answer.deduped) == (job_id, True)


async def test_a_retried_job_in_the_mode_not_running_holds_its_key_until_it_is_claimed(harness: Harness) -> None:
    fields: dict[str, Any] = {"idempotency_key": "k", "unique": UniqueMode.NOT_RUNNING}
    job_id = await stop(harness, JobState.DEAD, **fields)
    running = await put_and_take(harness, **fields)
    assert await retry(harness, [job_id]) == [(True, None)]
    (waits,) = await harness.driver.enqueue([job(**fields)])
    assert (waits.id, waits.deduped, waits.state) == (job_id, True, JobState.READY)
    assert (await take_one(harness)).id == job_id
    (fresh,) = await harness.driver.enqueue([job(**fields)])
    assert not fresh.deduped
    for held in (job_id, running.id):
        await harness.driver.cancel([held], reason=None)
        assert await retry(harness, [held]) == [(False, "X_JOB_DUPLICATE")]


async def test_done_is_retried_only_when_asked(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DONE)
    assert await retry(harness, [job_id]) == [(False, "X_JOB_NOT_RETRYABLE")]
    assert (await row(harness, job_id)).state == "done"
    assert await retry(harness, [job_id], allow_done=True) == [(True, None)]
    assert (await take_one(harness)).id == job_id


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_live_job_is_not_retried(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state)
    before = await row(harness, job_id)
    (result,) = await harness.driver.requeue(RequeueAsk((job_id,), allow_done=True))
    assert (result.done, result.code) == (False, "X_JOB_NOT_RETRYABLE")
    assert result.cause is not None
    assert str(job_id) in result.cause
    assert state.value in result.cause
    assert await row(harness, job_id) == before


async def test_an_unknown_id_is_refused_and_the_others_go_on(harness: Harness) -> None:
    dead, unknown = await stop(harness, JobState.DEAD), new_id()
    live = await put(harness)
    assert await retry(harness, [unknown, dead, live]) == [
        (False, "X_JOB_UNKNOWN"),
        (True, None),
        (False, "X_JOB_NOT_RETRYABLE"),
    ]


@pytest.mark.parametrize("state", ENDED)
async def test_another_tenant_s_job_is_unknown_to_a_retry(harness: Harness, state: JobState) -> None:
    job_id = await stop(harness, state, tenant_id="acme")
    assert await retry(harness, [job_id], tenant="globex", allow_done=True) == [(False, "X_JOB_UNKNOWN")]
    assert (await row(harness, job_id)).state == state
    assert await retry(harness, [job_id], tenant="acme", allow_done=True) == [(True, None)]


async def test_a_job_without_tenant_is_unknown_to_every_tenant(harness: Harness) -> None:
    job_id = await stop(harness, JobState.DEAD)
    assert await retry(harness, [job_id], tenant="acme") == [(False, "X_JOB_UNKNOWN")]


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize("twin_state", sorted(LIVE))
async def test_a_live_twin_is_in_the_way(harness: Harness, state: JobState, twin_state: JobState) -> None:
    job_id = await stop(harness, state, idempotency_key="k")
    twin = await bring_to(harness, twin_state, idempotency_key="k")
    before = await row(harness, job_id)
    (result,) = await harness.driver.requeue(RequeueAsk((job_id,), allow_done=True))
    assert (result.done, result.code) == (False, "X_JOB_DUPLICATE")
    assert result.cause is not None
    assert str(twin) in result.cause
    assert (result.meta["existing_id"], result.meta["state"]) == (str(twin), twin_state)
    assert await row(harness, job_id) == before


async def test_two_stopped_twins_are_not_both_retried(harness: Harness) -> None:
    first = await stop(harness, JobState.DEAD, idempotency_key="k")
    second = await stop(harness, JobState.DEAD, idempotency_key="k")
    third = await stop(harness, JobState.CANCELLED, idempotency_key="k")
    expected = [(True, None), (False, "X_JOB_DUPLICATE"), (False, "X_JOB_DUPLICATE")]
    assert await retry(harness, [third, first, second]) == expected, "the first that is named wins"
    assert (await row(harness, third)).state == "ready"


async def test_a_refused_retry_drops_no_step(harness: Harness) -> None:
    claimed = await put_and_take(harness, idempotency_key="k")
    await record(harness, step(claimed, "one"))
    await end(harness, claimed, Outcome.DEAD)
    await put(harness, idempotency_key="k")
    assert await retry(harness, [claimed.id], from_step="one") == [(False, "X_JOB_DUPLICATE")]
    assert await step_names(harness, claimed.run_id) == ["one"]


async def test_a_retried_first_run_is_refused_while_its_rerun_lives(harness: Harness) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    twin = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    await end(harness, first, Outcome.DEAD)
    assert (await take_one(harness)).id == twin
    assert await retry(harness, [first.id]) == [(False, "X_JOB_DUPLICATE")]


async def _with_steps(harness: Harness) -> UUID:
    claimed = await put_and_take(harness)
    for position, name in enumerate(["load", "pack", "ship", "mail"], start=1):
        await harness.advance(timedelta(seconds=1))
        status = StepStatus.FAILED if name == "mail" else StepStatus.COMPLETED
        await record(harness, step(claimed, name, position=position, status=status))
    await end(harness, claimed, Outcome.DEAD)
    return claimed.id


async def test_a_plain_retry_keeps_every_record(harness: Harness) -> None:
    job_id = await _with_steps(harness)
    await retry(harness, [job_id])
    assert await step_names(harness, job_id) == ["load", "pack", "ship", "mail"]


async def test_from_step_drops_it_and_all_that_started_later(harness: Harness) -> None:
    job_id = await _with_steps(harness)
    assert await retry(harness, [job_id], from_step="pack") == [(True, None)]
    assert await step_names(harness, job_id) == ["load"]


async def test_only_step_drops_that_one(harness: Harness) -> None:
    job_id = await _with_steps(harness)
    assert await retry(harness, [job_id], only_step="pack") == [(True, None)]
    assert await step_names(harness, job_id) == ["load", "ship", "mail"]


@pytest.mark.parametrize("option", ["from_step", "only_step"])
async def test_an_unknown_step_is_refused_with_those_that_there_are(harness: Harness, option: str) -> None:
    job_id = await _with_steps(harness)
    before = await row(harness, job_id)
    (result,) = await harness.driver.requeue(RequeueAsk((job_id,), **{option: "pakc"}))
    assert (result.done, result.code) == (False, "X_STEP_UNKNOWN")
    assert result.cause is not None
    assert all(name in result.cause for name in ("pakc", "load", "pack", "ship", "mail"))
    assert await row(harness, job_id) == before
    assert await step_names(harness, job_id) == ["load", "pack", "ship", "mail"]


async def test_retrying_nothing_answers_nothing(harness: Harness) -> None:
    assert await retry(harness, []) == []


# -- cancel ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_live_job_is_cancelled_at_once(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state, idempotency_key="k")
    now = await harness.driver.inspect.now()
    (result,) = await harness.driver.cancel([job_id], reason="not wanted")
    assert (result.id, result.done, result.code) == (job_id, True, None)
    seen = await row(harness, job_id)
    assert (seen.state, seen.cancel_reason, seen.finished_at, seen.lease_until) == (
        "cancelled",
        "not wanted",
        now,
        None,
    )
    assert seen.stop_reason is None
    await harness.advance(2 * HOUR)
    assert await take(harness) == []
    assert await harness.driver.reap([]) == []
    expected = ["cancelled"] if state is JobState.RUNNING else []
    assert [a.outcome for a in await harness.driver.inspect.attempts(job_id)] == expected


@pytest.mark.parametrize("state", ENDED)
async def test_an_ended_job_is_not_cancelled(harness: Harness, state: JobState) -> None:
    job_id = await stop(harness, state)
    before = await row(harness, job_id)
    (result,) = await harness.driver.cancel([job_id], reason="too late")
    assert (result.done, result.code) == (False, "X_JOB_NOT_CANCELLABLE")
    assert result.cause is not None
    assert str(job_id) in result.cause
    assert state.value in result.cause
    assert await row(harness, job_id) == before


async def test_cancels_are_answered_in_the_order_given(harness: Harness) -> None:
    live, dead, unknown = await put(harness), await stop(harness, JobState.DEAD, name="refund"), new_id()
    results = await harness.driver.cancel([unknown, live, dead])
    assert [result.id for result in results] == [unknown, live, dead]
    assert [result.code for result in results] == ["X_JOB_UNKNOWN", None, "X_JOB_NOT_CANCELLABLE"]


@pytest.mark.parametrize("state", sorted(JobState))
async def test_another_tenant_s_job_is_unknown_to_a_cancel(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state, tenant_id="acme")
    before = await row(harness, job_id)
    (result,) = await harness.driver.cancel([job_id], tenant="globex")
    assert (result.done, result.code) == (False, "X_JOB_UNKNOWN")
    assert await row(harness, job_id) == before


async def test_a_cancelled_key_is_free(harness: Harness) -> None:
    job_id = await put(harness, idempotency_key="k")
    await harness.driver.cancel([job_id])
    assert await put(harness, idempotency_key="k") != job_id
