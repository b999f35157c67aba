"""Queues: pausing them, and what is told of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import end, put, put_and_take, row, stop, take, take_one
from tests.contract.test_workers import beat
from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count, QueueRow

MINUTE = timedelta(minutes=1)


async def pause(harness: Harness, duration: timedelta | None = None, queue: str = "default") -> bool:
    return await harness.driver.pause(queue, actor="alice", reason="bank is away", duration=duration)


async def queue_row(harness: Harness, queue: str = "default") -> QueueRow:
    (found,) = [found for found in await harness.driver.inspect.queues() if found.queue == queue]
    return found


async def test_a_paused_queue_is_not_claimed(harness: Harness) -> None:
    job_id, other = await put(harness), await put(harness, queue="other")
    assert await pause(harness)
    before = await row(harness, job_id)
    assert before.waiting_on == "paused"
    claimed = await take(harness, queues={"default": 5, "other": 5})
    assert [c.id for c in claimed] == [other]
    assert await row(harness, job_id) == before
    assert await harness.driver.resume("default")
    assert (await take_one(harness)).id == job_id


async def test_a_pause_stops_no_running_job(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await pause(harness)
    await end(harness, claimed)
    assert (await row(harness, claimed.id)).state == "done"


async def test_a_pause_with_a_duration_ends_by_itself(harness: Harness) -> None:
    job_id = await put(harness)
    now = await harness.driver.inspect.now()
    assert await pause(harness, MINUTE)
    assert (await queue_row(harness)).resume_at == now + MINUTE
    await harness.advance(MINUTE - timedelta(microseconds=1))
    assert await take(harness) == []
    await harness.advance(timedelta(microseconds=1))
    assert (await queue_row(harness)).state != "paused"
    assert (await take_one(harness)).id == job_id
    assert not await harness.driver.resume("default")


async def test_a_pause_is_told_with_who_when_and_why(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    assert await pause(harness, queue="quiet")
    seen = await queue_row(harness, "quiet")
    assert (seen.state, seen.paused_at, seen.paused_by, seen.pause_reason) == ("paused", now, "alice", "bank is away")
    assert seen.resume_at is None


async def test_pausing_twice_and_resuming_twice_say_so(harness: Harness) -> None:
    assert [await pause(harness), await pause(harness)] == [True, False]
    assert [await harness.driver.resume("default"), await harness.driver.resume("default")] == [True, False]
    assert await pause(harness, MINUTE)
    await harness.advance(MINUTE)
    assert await pause(harness), "the first pause is over"


async def test_enqueue_goes_on_while_paused(harness: Harness) -> None:
    await pause(harness)
    job_id = await put(harness)
    await harness.driver.resume("default")
    assert (await take_one(harness)).id == job_id


async def test_a_queue_counts_its_rows_by_what_they_are(harness: Harness) -> None:
    await put_and_take(harness)
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.SUSPENDED, run_at=await harness.driver.inspect.now() + MINUTE)
    await stop(harness, JobState.DEAD)
    await stop(harness, JobState.DONE)
    await put(harness)
    await harness.advance(timedelta(seconds=5))
    await put(harness)
    await put(harness, delay=MINUTE)
    seen = await queue_row(harness)
    assert (seen.ready, seen.delayed, seen.suspended, seen.dead) == (Count(2), Count(1), Count(1), Count(1))
    assert (seen.running, seen.oldest_ready_ms) == (1, 5_000)


@pytest.mark.parametrize("served", [True, False])
async def test_a_queue_is_unserved_until_a_live_worker_serves_it(harness: Harness, served: bool) -> None:
    await put(harness)
    if served:
        await harness.driver.beat(beat(queues=("default", "other"), concurrency=7))
    seen = await queue_row(harness)
    expected = ("running", 7, 1) if served else ("unserved", 0, 0)
    assert (seen.state, seen.capacity, seen.workers) == expected


async def test_a_declared_queue_is_listed_before_its_first_job(harness: Harness) -> None:
    assert await harness.driver.inspect.queues() == []
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", "billing", {})])
    seen = await queue_row(harness, "billing")
    assert (seen.state, seen.ready, seen.oldest_ready_ms) == ("unserved", Count(0), None)
