"""Settle: what each outcome leaves behind, and that only the holder of the claim can leave anything."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import LEASE, but, end, ending, put, put_and_take, row, take, take_one
from ultijobs._queue.claims import ClaimedJob, Settlement, Verdict
from ultijobs._queue.records import JobState, Outcome, StopReason

MINUTE = timedelta(minutes=1)
ERROR = {"error_code": "shop.Declined", "error": "shop.Declined: no", "fingerprint": "7f3a", "traceback": "Traceback…"}
SETTLED_BY_WORKERS = [o for o in Outcome if o not in {Outcome.LOST, Outcome.CANCELLED}]


async def test_ok_ends_the_job(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.RETRIED, **ERROR)
    claimed = await take_one(harness)
    assert await end(harness, claimed) is Verdict.SETTLED
    seen = await row(harness, claimed.id)
    assert (seen.state, seen.lease_until, seen.last_error, seen.stop_reason) == ("done", None, None, None)
    assert seen.finished_at == await harness.driver.inspect.now()
    assert [a.outcome for a in await harness.driver.inspect.attempts(claimed.run_id)] == ["retried"]
    assert await take(harness) == []


async def test_retried_waits_for_its_delay_and_keeps_the_attempt(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    started = await harness.driver.inspect.now()
    await harness.advance(MINUTE)
    now = await harness.driver.inspect.now()
    assert await end(harness, claimed, Outcome.RETRIED, delay=MINUTE, **ERROR) is Verdict.SETTLED
    seen = await row(harness, claimed.id)
    assert (seen.state, seen.attempt, seen.run_at, seen.waiting_on) == ("delayed", 1, now + MINUTE, "backoff")
    assert (seen.lease_until, seen.worker_id, seen.finished_at, seen.stop_reason) == (None, None, None, None)
    assert (seen.last_error, seen.error_code, seen.fingerprint) == ("shop.Declined: no", "shop.Declined", "7f3a")
    (attempt,) = await harness.driver.inspect.attempts(claimed.run_id)
    assert (attempt.job_id, attempt.attempt, attempt.lease_no) == (claimed.id, 1, claimed.lease_no)
    assert (attempt.worker_id, attempt.outcome, attempt.error_code) == ("w-1", "retried", "shop.Declined")
    assert (attempt.error, attempt.traceback) == ("shop.Declined: no", "Traceback…")
    assert (attempt.started_at, attempt.ended_at) == (started, now)
    assert await take(harness) == []
    await harness.advance(MINUTE)
    assert (await take_one(harness)).attempt == 2


async def test_suspended_sleeps_until_its_time_and_costs_no_attempt(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    wake = await harness.driver.inspect.now() + MINUTE
    assert await end(harness, claimed, Outcome.SUSPENDED, run_at=wake) is Verdict.SETTLED
    seen = await row(harness, claimed.id)
    assert (seen.state, seen.attempt, seen.run_at, seen.waiting_on) == ("suspended", 0, wake, "sleep")
    assert (seen.lease_until, seen.worker_id) == (None, None)
    assert await harness.driver.inspect.attempts(claimed.run_id) == []
    assert await take(harness) == []
    await harness.advance(MINUTE)
    again = await take_one(harness)
    assert (again.id, again.attempt, again.claims) == (claimed.id, 1, 2)


async def test_returned_costs_no_attempt_and_is_due_at_once(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    assert await end(harness, claimed, Outcome.RETURNED) is Verdict.SETTLED
    seen = await row(harness, claimed.id)
    assert (seen.state, seen.attempt, seen.lease_until, seen.worker_id) == ("ready", 0, None, None)
    assert [a.outcome for a in await harness.driver.inspect.attempts(claimed.run_id)] == ["returned"]
    assert (await take_one(harness)).attempt == 1


async def test_returned_with_a_reason_shows_that_reason_whole(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.RETRIED, error_code="ValueError", error="ValueError: first", fingerprint="f1")
    again = await take_one(harness)
    await end(harness, again, Outcome.RETURNED, error_code="X_NEWER", error="X_NEWER: then", fingerprint="f2")
    seen = await row(harness, claimed.id)
    assert (seen.error_code, seen.last_error, seen.fingerprint) == ("X_NEWER", "X_NEWER: then", "f2")
    await end(harness, await take_one(harness), Outcome.RETURNED)
    seen = await row(harness, claimed.id)
    assert (seen.error_code, seen.last_error, seen.fingerprint) == ("X_NEWER", "X_NEWER: then", "f2")


async def test_attempts_are_spent_by_failures_alone(harness: Harness) -> None:
    await put(harness, max_attempts=9)
    outcomes = [
        Outcome.RETURNED,
        Outcome.RETRIED,
        Outcome.SUSPENDED,
        Outcome.RETURNED,
        Outcome.RETRIED,
        Outcome.RETRIED,
    ]
    seen: list[int] = []
    for outcome in outcomes:
        claimed = await take_one(harness)
        seen.append(claimed.attempt)
        await end(harness, claimed, outcome)
    assert seen == [1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.DEAD, StopReason.ATTEMPTS_EXHAUSTED),
        (Outcome.DEAD, StopReason.TERMINAL),
        (Outcome.FAILED, StopReason.ATTEMPTS_EXHAUSTED),
        (Outcome.FAILED, StopReason.CODE_CHANGED),
    ],
)
async def test_a_stop_says_why_and_is_final(harness: Harness, outcome: Outcome, reason: StopReason) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(MINUTE)
    assert await end(harness, claimed, outcome, stop_reason=reason, delay=MINUTE, **ERROR) is Verdict.SETTLED
    now = await harness.driver.inspect.now()
    seen = await row(harness, claimed.id)
    assert (seen.run_at, seen.due_at) == (claimed.run_at, claimed.run_at), "when it was due stays to be seen"
    assert (seen.state, seen.stop_reason, seen.attempt, seen.finished_at) == (outcome.value, reason.value, 1, now)
    assert (seen.last_error, seen.error_code, seen.fingerprint) == ("shop.Declined: no", "shop.Declined", "7f3a")
    (attempt,) = await harness.driver.inspect.attempts(claimed.run_id)
    assert (attempt.outcome, attempt.error_code) == (outcome.value, "shop.Declined")
    await harness.advance(timedelta(days=2))
    assert await take(harness) == []
    assert await harness.driver.reap([]) == []


async def test_a_return_keeps_the_error_of_the_attempt_before(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.RETRIED, **ERROR)
    await end(harness, await take_one(harness), Outcome.RETURNED)
    seen = await row(harness, claimed.id)
    assert (seen.last_error, seen.error_code, seen.fingerprint) == ("shop.Declined: no", "shop.Declined", "7f3a")


async def _moved_on(harness: Harness, to: str) -> ClaimedJob:
    """A claim whose lease lapsed, and whose job has gone on without it."""
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    if to != "waiting":
        await harness.advance(MINUTE)
        new = await take_one(harness, worker="w-2")
        if to != "running":
            await end(harness, new, {"done": Outcome.OK, "dead": Outcome.DEAD}[to])
    return old


@pytest.mark.parametrize("to", ["waiting", "running", "done", "dead"])
@pytest.mark.parametrize("outcome", SETTLED_BY_WORKERS)
async def test_a_late_settlement_changes_nothing(harness: Harness, outcome: Outcome, to: str) -> None:
    old = await _moved_on(harness, to)
    before = await row(harness, old.id)
    attempts = await harness.driver.inspect.attempts(old.run_id)
    assert await end(harness, old, outcome, delay=MINUTE, error="late") is Verdict.LOST
    assert await row(harness, old.id) == before
    assert await harness.driver.inspect.attempts(old.run_id) == attempts


@pytest.mark.parametrize("outcome", SETTLED_BY_WORKERS)
async def test_a_settlement_may_be_repeated(harness: Harness, outcome: Outcome) -> None:
    claimed = await put_and_take(harness)
    settlement = ending(claimed, outcome, run_at=await harness.driver.inspect.now() + MINUTE, delay=MINUTE)
    assert await harness.driver.settle([settlement]) == [Verdict.SETTLED]
    before = await row(harness, claimed.id)
    await harness.advance(timedelta(seconds=1))
    assert await harness.driver.settle([settlement]) == [Verdict.SETTLED]
    assert await row(harness, claimed.id) == but(before)
    assert len(await harness.driver.inspect.attempts(claimed.run_id)) <= 1


@pytest.mark.parametrize("second", [Outcome.DEAD, Outcome.FAILED, Outcome.RETRIED, Outcome.SUSPENDED])
async def test_the_first_settlement_of_a_claim_stands(harness: Harness, second: Outcome) -> None:
    claimed = await put_and_take(harness)
    assert await end(harness, claimed) is Verdict.SETTLED
    assert await end(harness, claimed, second) is Verdict.LOST
    assert (await row(harness, claimed.id)).state == "done"


@pytest.mark.parametrize("outcome", [*SETTLED_BY_WORKERS, Outcome.CANCELLED])
async def test_the_worker_of_a_cancelled_job_is_told(harness: Harness, outcome: Outcome) -> None:
    claimed = await put_and_take(harness)
    await harness.driver.cancel([claimed.id], reason="not wanted")
    before = await row(harness, claimed.id)
    assert await end(harness, claimed, outcome, error="late") is Verdict.CANCELLED
    assert await row(harness, claimed.id) == before
    (attempt,) = await harness.driver.inspect.attempts(claimed.run_id)
    assert (attempt.outcome, attempt.lease_no) == ("cancelled", claimed.lease_no)


async def test_a_lapsed_lease_that_nobody_took_over_still_settles(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(10 * LEASE)
    assert await end(harness, claimed) is Verdict.SETTLED
    assert (await row(harness, claimed.id)).state == JobState.DONE


async def test_many_are_answered_in_the_order_given(harness: Harness) -> None:
    for _ in range(5):
        await put(harness)
    claimed = await take(harness)
    lost = claimed[3]
    await end(harness, lost, Outcome.RETURNED)
    await harness.driver.cancel([claimed[1].id])
    settlements: list[Settlement] = [
        ending(claimed[4], Outcome.RETRIED, delay=MINUTE),
        ending(claimed[1], Outcome.OK),
        ending(claimed[0], Outcome.DEAD),
        ending(lost, Outcome.OK),
        ending(claimed[2], Outcome.OK),
    ]
    assert await harness.driver.settle(settlements) == [
        Verdict.SETTLED,
        Verdict.CANCELLED,
        Verdict.SETTLED,
        Verdict.LOST,
        Verdict.SETTLED,
    ]
    states = [(await row(harness, one.id)).state for one in claimed]
    assert states == ["dead", "cancelled", "done", "ready", "delayed"]


@pytest.mark.parametrize("late", [Outcome.OK, Outcome.RETRIED])
@pytest.mark.parametrize("outcome", SETTLED_BY_WORKERS)
async def test_an_old_and_a_new_claim_of_one_job_are_told_apart_in_one_call(
    harness: Harness, outcome: Outcome, late: Outcome
) -> None:
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    await harness.advance(MINUTE)
    new = await take_one(harness)
    given = [ending(old, late, error="late"), ending(new, outcome, error="fresh")]
    assert await harness.driver.settle(given) == [Verdict.LOST, Verdict.SETTLED]
    states = {Outcome.OK: "done", Outcome.SUSPENDED: "suspended", Outcome.RETRIED: "ready", Outcome.RETURNED: "ready"}
    seen = await row(harness, new.id)
    assert seen.state == states.get(outcome, outcome.value)
    assert seen.last_error != "late"


async def test_one_settlement_given_twice_in_one_call(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    given = ending(claimed, Outcome.RETRIED, delay=MINUTE)
    assert await harness.driver.settle([given, given]) == [Verdict.SETTLED, Verdict.SETTLED]
    assert len(await harness.driver.inspect.attempts(claimed.run_id)) == 1


async def test_a_job_that_is_gone_is_lost(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    stranger = ending(claimed, Outcome.OK, id=UUID(int=1), run_id=UUID(int=1))
    assert await harness.driver.settle([stranger]) == [Verdict.LOST]
    assert (await row(harness, claimed.id)).state == "running"
