"""Leases: renewing them, losing them, and what becomes of a job whose worker vanished."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    LEASE,
    POLICY,
    SECOND,
    end,
    job,
    put,
    put_and_take,
    record,
    renew,
    retry,
    row,
    step,
    take,
    take_one,
)
from ultijobs._queue.claims import Beat, BeatAnswer, CrashPolicy, Progress, Verdict
from ultijobs._queue.records import Outcome
from ultijobs._queue.steps import StepAnswer


async def test_a_renewal_extends_the_lease_from_the_store_s_now(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(10 * SECOND)
    beat = Beat(claimed.id, claimed.lease_no, step="pack", progress=Progress(3, 10, "boxes"))
    assert await renew(harness, beat, lease=2 * LEASE) == [BeatAnswer.HELD]
    seen = await row(harness, claimed.id)
    assert seen.lease_until == await harness.driver.inspect.now() + 2 * LEASE
    assert (seen.running_step, seen.progress) == ("pack", Progress(3, 10, "boxes"))
    (lease,) = await harness.driver.inspect.leases()
    assert (lease.id, lease.running_step, lease.progress) == (claimed.id, "pack", Progress(3, 10, "boxes"))


async def test_the_last_progress_stays_until_there_is_a_newer_one(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await renew(harness, Beat(claimed.id, claimed.lease_no, progress=Progress(1)))
    await renew(harness, Beat(claimed.id, claimed.lease_no))
    assert (await row(harness, claimed.id)).progress == Progress(1)
    await renew(harness, Beat(claimed.id, claimed.lease_no, progress=Progress(2.5, None, "half")))
    assert (await row(harness, claimed.id)).progress == Progress(2.5, None, "half")


async def test_renewals_are_answered_in_the_order_given(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(4)])
    held, cancelled, done, moved = await take(harness)
    await harness.driver.cancel([cancelled.id])
    await end(harness, done)
    await end(harness, moved, Outcome.RETURNED)
    beats = [Beat(c.id, c.lease_no) for c in (moved, held, done, cancelled)]
    assert await renew(harness, *beats) == [BeatAnswer.LOST, BeatAnswer.HELD, BeatAnswer.LOST, BeatAnswer.CANCELLED]


async def test_a_lapsed_lease_that_nobody_took_is_renewed(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.crash(claimed)
    (lease,) = await harness.driver.inspect.leases()
    assert lease.expired
    assert await renew(harness, Beat(claimed.id, claimed.lease_no)) == [BeatAnswer.HELD]
    (lease,) = await harness.driver.inspect.leases()
    assert not lease.expired
    assert await harness.driver.reap([]) == []


async def test_an_old_claim_renews_nothing(harness: Harness) -> None:
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    await harness.advance(SECOND)
    new = await take_one(harness)
    before = await row(harness, old.id)
    await harness.advance(SECOND)
    late = Beat(old.id, old.lease_no, step="late", progress=Progress(99))
    assert await renew(harness, late) == [BeatAnswer.LOST]
    assert await row(harness, old.id) == before
    assert await renew(harness, Beat(new.id, new.lease_no)) == [BeatAnswer.HELD]


async def test_cancel_then_retry_within_a_heartbeat_does_not_renew_the_old_claim(harness: Harness) -> None:
    old = await put_and_take(harness)
    await harness.driver.cancel([old.id])
    assert await retry(harness, [old.id]) == [(True, None)]
    new = await take_one(harness)
    assert new.lease_no != old.lease_no
    before = await row(harness, new.id)
    await harness.advance(SECOND)
    assert await renew(harness, Beat(old.id, old.lease_no, progress=Progress(1))) == [BeatAnswer.CANCELLED]
    assert await row(harness, new.id) == before
    assert await end(harness, old) is Verdict.CANCELLED
    assert await record(harness, step(old)) == [StepAnswer(held=False)]
    assert await row(harness, new.id) == before


async def test_an_old_and_a_new_claim_of_one_job_are_told_apart_in_one_renewal(harness: Harness) -> None:
    old = await put_and_take(harness)
    await harness.crash(old)
    await harness.driver.reap([])
    await harness.advance(SECOND)
    new = await take_one(harness)
    for beats in ((old, new), (new, old)):
        answers = await renew(harness, *(Beat(c.id, c.lease_no, step=f"of {c.lease_no}") for c in beats))
        expected = {old.lease_no: BeatAnswer.LOST, new.lease_no: BeatAnswer.HELD}
        assert answers == [expected[c.lease_no] for c in beats]
        assert (await row(harness, new.id)).running_step == f"of {new.lease_no}"


async def test_a_claim_that_lapsed_before_the_cancel_was_lost_and_not_cancelled(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.crash(claimed)
    await harness.driver.reap([])
    await harness.driver.cancel([claimed.id])
    assert await renew(harness, Beat(claimed.id, claimed.lease_no)) == [BeatAnswer.LOST]
    assert await end(harness, claimed) is Verdict.LOST


async def test_a_lapsed_claim_is_delivered_again_after_its_back_off(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(LEASE)
    assert await harness.driver.reap([POLICY]) == [], "the lease ends after its last moment, not in it"
    assert not (await harness.driver.attention()).lapsed
    await harness.advance(timedelta(microseconds=1))
    assert (await harness.driver.attention()).lapsed
    (reaped,) = await harness.driver.reap([POLICY])
    assert (reaped.id, reaped.run_id, reaped.name, reaped.queue) == (claimed.id, claimed.run_id, "charge", "default")
    assert (reaped.lease_no, reaped.attempt, reaped.worker_id) == (claimed.lease_no, 1, "w-1")
    assert reaped.state == "delayed"
    seen = await row(harness, claimed.id)
    assert (seen.state, seen.attempt, seen.lease_until, seen.worker_id) == ("delayed", 1, None, None)
    assert (seen.run_at, seen.waiting_on) == (claimed.claimed_at + LEASE + SECOND, "backoff")
    (attempt,) = await harness.driver.inspect.attempts(claimed.run_id)
    assert (attempt.outcome, attempt.worker_id, attempt.lease_no) == ("lost", "w-1", claimed.lease_no)
    assert attempt.error_code == "X_JOB_LEASE_LOST"
    assert await take(harness) == []
    await harness.advance(SECOND)
    assert (await take_one(harness)).attempt == 2


@pytest.mark.parametrize(
    ("policy", "gaps"),
    [
        (CrashPolicy("charge", "exponential", SECOND, timedelta(seconds=3)), [1, 2, 3, 3]),
        (CrashPolicy("charge", "linear", 2 * SECOND, timedelta(seconds=5)), [2, 4, 5, 5]),
        (CrashPolicy("charge", "fixed", 7 * SECOND, timedelta(hours=1)), [7, 7, 7, 7]),
        (CrashPolicy("refund", "fixed", 7 * SECOND, timedelta(hours=1)), [1, 2, 4, 8]),
    ],
)
async def test_the_back_off_of_a_crash_is_the_policy_s(harness: Harness, policy: CrashPolicy, gaps: list[int]) -> None:
    await put(harness, max_attempts=10)
    seen: list[float] = []
    for _ in gaps:
        claimed = await take_one(harness)
        await harness.crash(claimed)
        await harness.driver.reap([policy])
        run_at = (await row(harness, claimed.id)).run_at
        seen.append((run_at - claimed.claimed_at - LEASE).total_seconds())
        await harness.advance(run_at - await harness.driver.inspect.now())
    assert seen == gaps


async def test_a_back_off_counts_from_the_lapse_however_late_it_is_noticed(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.crash(claimed)
    await harness.advance(timedelta(minutes=5))
    (reaped,) = await harness.driver.reap([POLICY])
    assert reaped.state == "ready"
    assert (await take_one(harness)).attempt == 2


@pytest.mark.parametrize(("dead_letter", "state"), [(True, "dead"), (False, "failed")])
async def test_a_job_that_takes_down_its_workers_stops(harness: Harness, dead_letter: bool, state: str) -> None:
    policy = CrashPolicy("charge", "fixed", SECOND, SECOND, dead_letter=dead_letter)
    job_id = await put(harness, max_attempts=2)
    for worker in ("w-east", "w-west"):
        claimed = await take_one(harness, worker=worker)
        await harness.crash(claimed)
        (reaped,) = await harness.driver.reap([policy])
        await harness.advance(SECOND)
    assert reaped.state == state
    seen = await row(harness, job_id)
    assert (seen.state, seen.stop_reason, seen.error_code) == (state, "lease-exhausted", "X_JOB_MAX_ATTEMPTS")
    assert (seen.attempt, seen.lease_until) == (2, None)
    assert seen.finished_at is not None
    assert seen.last_error is not None
    assert all(word in seen.last_error for word in ("X_JOB_MAX_ATTEMPTS", "w-east", "w-west"))
    attempts = await harness.driver.inspect.attempts(job_id)
    assert [(a.outcome, a.worker_id, a.attempt) for a in attempts] == [("lost", "w-east", 1), ("lost", "w-west", 2)]
    await harness.advance(timedelta(days=1))
    assert await take(harness) == []
    assert await harness.driver.reap([policy]) == []


async def test_a_crash_leaves_nothing_of_the_error_before(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.RETRIED, error_code="shop.Declined", error="no", fingerprint="7f3a")
    await harness.crash(await take_one(harness))
    await harness.driver.reap([POLICY])
    seen = await row(harness, claimed.id)
    assert (seen.error_code, seen.fingerprint) == ("X_JOB_LEASE_LOST", None)
    assert seen.last_error is not None
    assert seen.last_error.startswith("X_JOB_LEASE_LOST")


async def test_an_abandoned_body_leaves_its_error(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await renew(harness, Beat(claimed.id, claimed.lease_no, error_code="X_JOB_TIMEOUT"))
    await harness.crash(claimed)
    await harness.driver.reap([POLICY])
    (attempt,) = await harness.driver.inspect.attempts(claimed.run_id)
    assert (attempt.outcome, attempt.error_code) == ("lost", "X_JOB_TIMEOUT")
    await harness.advance(SECOND)
    again = await take_one(harness)
    await harness.crash(again)
    await harness.driver.reap([POLICY])
    attempts = await harness.driver.inspect.attempts(claimed.run_id)
    assert [a.error_code for a in attempts] == ["X_JOB_TIMEOUT", "X_JOB_LEASE_LOST"]


async def test_only_what_lapsed_is_reaped_and_only_once(harness: Harness) -> None:
    first = await put_and_take(harness)
    await harness.crash(first)
    second = await put_and_take(harness)
    other = await harness.second()
    assert [reaped.id for reaped in await harness.driver.reap([])] == [first.id]
    assert await other.reap([]) == []
    assert (await row(harness, second.id)).state == "running"


async def test_a_reap_takes_no_more_than_its_limit(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(5)])
    await harness.crash(*await take(harness))
    counts = [len(await harness.driver.reap([], limit=2)) for _ in range(4)]
    assert counts == [2, 2, 1, 0]


async def test_a_reaped_claim_writes_nothing_any_more(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.crash(claimed)
    await harness.driver.reap([])
    before = await row(harness, claimed.id)
    assert await renew(harness, Beat(claimed.id, claimed.lease_no)) == [BeatAnswer.LOST]
    assert await record(harness, step(claimed)) == [StepAnswer(held=False)]
    assert await end(harness, claimed) is Verdict.LOST
    assert await row(harness, claimed.id) == before
    assert await harness.driver.inspect.steps(claimed.run_id) == []


async def test_a_row_that_runs_without_a_lease_is_nobodys_and_is_delivered_again(harness: Harness) -> None:
    one = await put(harness)
    await harness.write_state(one, "running")
    assert (await harness.driver.attention()).lapsed
    (reaped,) = await harness.driver.reap([POLICY])
    assert (reaped.id, reaped.worker_id) == (one, None)
    await harness.advance(SECOND)
    assert [claimed.id for claimed in await take(harness)] == [one]
    assert not (await harness.driver.attention()).lapsed


@pytest.mark.parametrize("due", [True, False], ids=["due", "later"])
async def test_a_row_that_was_written_as_delayed_runs_when_it_is_due(harness: Harness, due: bool) -> None:
    one = await put(harness, delay=timedelta(0) if due else timedelta(hours=1))
    await harness.write_state(one, "delayed")
    assert (await harness.driver.attention()).lapsed
    assert await harness.driver.reap([]) == []
    assert (await row(harness, one)).state == ("ready" if due else "delayed")
    assert [claimed.id for claimed in await take(harness)] == ([one] if due else [])
    await harness.advance(timedelta(hours=1))
    assert [claimed.id for claimed in await take(harness)] == ([] if due else [one])


async def test_of_rows_written_as_delayed_under_one_key_one_runs_at_a_time(harness: Harness) -> None:
    ids = []
    for _ in range(3):
        ids.append(await put(harness, idempotency_key="k"))
        await harness.write_state(ids[-1], "delayed")
    for _ in ids:
        await harness.driver.reap([])
        (claimed,) = await take(harness)
        await harness.driver.reap([])
        assert await take(harness) == []
        await end(harness, claimed)
    assert not (await harness.driver.attention()).lapsed
