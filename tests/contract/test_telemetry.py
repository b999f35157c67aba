"""What is told once in a fleet: seats of publishers, and losses."""

from __future__ import annotations

from tests.contract.harness import Harness
from tests.contract.moves import LEASE, SECOND, end, put_and_take, take_one
from ultijobs._queue.records import Outcome
from ultijobs._queue.telemetry import LostClaim


async def test_a_seat_is_one_holder_s_until_its_lease_is_over(harness: Harness) -> None:
    seats = harness.driver.telemetry
    assert await seats.take_seat("queues", "a", lease=LEASE)
    assert not await seats.take_seat("queues", "b", lease=LEASE)
    await harness.advance(LEASE - SECOND)
    assert await seats.take_seat("queues", "a", lease=LEASE)
    await harness.advance(LEASE - SECOND)
    assert not await (await harness.second()).telemetry.take_seat("queues", "b", lease=LEASE)
    await harness.advance(2 * SECOND)
    assert await seats.take_seat("queues", "b", lease=LEASE)
    assert not await seats.take_seat("queues", "a", lease=LEASE)


async def test_a_seat_that_is_left_is_free_at_once_and_nobody_leaves_another_s(harness: Harness) -> None:
    seats = harness.driver.telemetry
    assert await seats.take_seat("outbox", "a", lease=LEASE)
    assert await seats.take_seat("queues", "b", lease=LEASE)
    await seats.leave_seat("outbox", "b")
    assert not await seats.take_seat("outbox", "b", lease=LEASE)
    await seats.leave_seat("outbox", "a")
    assert await seats.take_seat("outbox", "b", lease=LEASE)


async def test_a_loss_is_told_by_the_worker_or_by_the_reaper_never_by_both(harness: Harness) -> None:
    told, silent = await put_and_take(harness), await put_and_take(harness)
    await harness.crash(told, silent)
    telemetry = harness.driver.telemetry
    assert await telemetry.note_lost([LostClaim(told.id, told.lease_no)]) == [True]
    assert await telemetry.note_lost([LostClaim(told.id, told.lease_no)]) == [False]
    reaped = {each.id: each.noted for each in await harness.driver.reap([])}
    assert reaped == {told.id: False, silent.id: True}
    assert await telemetry.note_lost([LostClaim(silent.id, silent.lease_no)]) == [False]
    (attempt,) = await harness.driver.inspect.attempts(told.run_id)
    assert (attempt.outcome, attempt.error_code, attempt.worker_id) == ("lost", "X_JOB_LEASE_LOST", "w-1")


async def test_a_claim_that_ended_otherwise_is_no_loss(harness: Harness) -> None:
    done, cancelled, again = [await put_and_take(harness) for _ in range(3)]
    await end(harness, done)
    await harness.driver.cancel([cancelled.id])
    await end(harness, again, Outcome.RETURNED)
    newer = await take_one(harness)
    claims = [LostClaim(each.id, each.lease_no) for each in (done, cancelled, again)]
    assert await harness.driver.telemetry.note_lost(claims) == [False, False, False]
    assert newer.id == again.id
    assert await harness.driver.telemetry.note_lost([LostClaim(newer.id, newer.lease_no)]) == [True]
