"""Steps: recorded under the claim, final once completed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import LEASE, end, job, put_and_take, record, step, take, take_one
from ultijobs._queue.records import Outcome
from ultijobs._queue.steps import StepAnswer, StepKind, StepStatus

SECOND = timedelta(seconds=1)
WAITS = {"kind": StepKind.WAIT, "status": StepStatus.WAITING, "output": None}
SLEEPS = {"kind": StepKind.SLEEP, "status": StepStatus.SLEEPING, "output": None}
FAILS = {"status": StepStatus.FAILED, "output": None, "error": "ValueError: no"}


async def test_a_completed_step_is_kept_whole(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(10 * SECOND)
    now = await harness.driver.inspect.now()
    answers = await record(
        harness, step(claimed, "pack", position=3, output='{"b":1, "a":1.0}', took=2 * SECOND, tries=2)
    )
    assert answers == [StepAnswer(held=True)]
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.run_id, found.name, found.kind, found.status) == (claimed.run_id, "pack", "run", "completed")
    assert (found.output, found.error, found.position, found.tries) == ('{"b":1, "a":1.0}', None, 3, 2)
    assert (found.started_at, found.completed_at, found.wake_at) == (now - 2 * SECOND, now, None)
    assert found.lease_no == claimed.lease_no


async def test_a_completed_step_never_changes(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed, output='"first"'))
    before = await harness.driver.inspect.steps(claimed.run_id)
    await harness.advance(SECOND)
    for late in (step(claimed, output='"second"'), step(claimed, **FAILS), step(claimed, **SLEEPS, wake_in=SECOND)):
        (answer,) = await record(harness, late)
        assert answer.held
    assert await harness.driver.inspect.steps(claimed.run_id) == before


async def test_a_failed_step_may_still_complete_and_keeps_its_first_start(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(10 * SECOND)
    await record(harness, step(claimed, **FAILS, took=SECOND))
    (failed,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (failed.status, failed.error, failed.completed_at) == ("failed", "ValueError: no", None)
    await end(harness, claimed, Outcome.RETRIED)
    again = await take_one(harness)
    await harness.advance(5 * SECOND)
    await record(harness, step(again, output="1", tries=2, took=SECOND))
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.status, found.output, found.error, found.tries) == ("completed", "1", None, 2)
    assert found.started_at == failed.started_at
    assert found.completed_at == await harness.driver.inspect.now()
    assert found.lease_no == again.lease_no


@pytest.mark.parametrize("fields", [WAITS, SLEEPS])
async def test_the_wake_of_a_wait_is_set_once(harness: Harness, fields: dict[str, object]) -> None:
    claimed = await put_and_take(harness)
    wake = await harness.driver.inspect.now() + 60 * SECOND
    assert await record(harness, step(claimed, **fields, wake_in=60 * SECOND)) == [StepAnswer(held=True, wake_at=wake)]
    await harness.advance(20 * SECOND)
    assert await record(harness, step(claimed, **fields, wake_in=60 * SECOND)) == [StepAnswer(held=True, wake_at=wake)]
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.wake_at, found.completed_at, found.status) == (wake, None, fields["status"])
    await harness.advance(40 * SECOND)
    await record(harness, step(claimed, kind=fields["kind"], output=None))
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.wake_at, found.status) == (wake, "completed")


async def test_a_wait_keeps_what_it_waits_for(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed, **WAITS, wake_in=SECOND, event="org.approved", match="o-1"))
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.kind, found.event, found.match) == ("wait", "org.approved", "o-1")


@pytest.mark.parametrize("fields", [{}, FAILS, {**SLEEPS, "wake_in": SECOND}])
async def test_an_old_claim_records_nothing(harness: Harness, fields: dict[str, object]) -> None:
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    await harness.advance(LEASE)
    new = await take_one(harness)
    assert await record(harness, step(old, **fields)) == [StepAnswer(held=False)]
    assert await harness.driver.inspect.steps(old.run_id) == []
    await record(harness, step(new, output='"mine"'))
    before = await harness.driver.inspect.steps(old.run_id)
    assert await record(harness, step(old, **fields)) == [StepAnswer(held=False)]
    assert await harness.driver.inspect.steps(old.run_id) == before


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.DEAD, Outcome.SUSPENDED, Outcome.RETRIED, Outcome.RETURNED])
async def test_a_settled_claim_records_nothing(harness: Harness, outcome: Outcome) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, outcome)
    assert await record(harness, step(claimed)) == [StepAnswer(held=False)]
    assert await harness.driver.inspect.steps(claimed.run_id) == []


async def test_a_cancelled_claim_records_nothing(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.driver.cancel([claimed.id])
    assert await record(harness, step(claimed)) == [StepAnswer(held=False)]


async def test_many_are_answered_in_the_order_given_and_read_by_position(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(3)])
    first, lost, second = await take(harness)
    await end(harness, lost, Outcome.RETURNED)
    answers = await record(
        harness,
        step(second, "b", position=2),
        step(lost, "a"),
        step(first, "z", position=1),
        step(second, "a", position=9),
        step(second, "c", position=1),
    )
    assert [answer.held for answer in answers] == [True, False, True, True, True]
    loaded = await harness.driver.load_steps([first.run_id, second.run_id, lost.run_id])
    assert [found.name for found in loaded[first.run_id]] == ["z"]
    assert [found.name for found in loaded[second.run_id]] == ["c", "b", "a"]
    assert not loaded.get(lost.run_id)
    assert list(loaded[second.run_id]) == await harness.driver.inspect.steps(second.run_id)


async def test_an_old_and_a_new_claim_of_one_job_are_told_apart_in_one_call(harness: Harness) -> None:
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    await harness.advance(LEASE)
    new = await take_one(harness)
    answers = await record(harness, step(old, "a"), step(new, "b"), step(old, "c"), step(new, "a", output="2"))
    assert [answer.held for answer in answers] == [False, True, False, True]
    found = {one.name: one.output for one in await harness.driver.inspect.steps(new.run_id)}
    assert found == {"a": "2", "b": '"first"'}


async def test_two_records_of_one_step_in_one_call_keep_the_first_completed(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    answers = await record(harness, step(claimed, output="1"), step(claimed, output="2"))
    assert [answer.held for answer in answers] == [True, True]
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert found.output == "1"


async def test_a_claim_says_whether_anything_is_recorded_for_its_run(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    assert not claimed.has_steps
    await record(harness, step(claimed))
    await end(harness, claimed, Outcome.RETRIED)
    assert (await take_one(harness)).has_steps
