"""Workers: what they tell of themselves, what is made of it, and what they are told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import put, row
from ultijobs._ids import new_id
from ultijobs._queue.telling import WorkerBeat, WorkerOrder

SECOND = timedelta(seconds=1)


def beat(worker_id: str = "w-1", instance: UUID | None = None, **fields: Any) -> WorkerBeat:
    return WorkerBeat(
        **{
            "instance": instance or new_id(),
            "worker_id": worker_id,
            "host": "host-1",
            "pid": 42,
            "version": "0.1.0",
            "code_version": "2026.1",
            "environment": "prod",
            "queues": ("default",),
            "names": ("charge", "refund"),
            "concurrency": 5,
            "state": "running",
            "free_slots": 5,
            "running": 0,
            "loop_lag_ms": 3,
            "rss_bytes": 1_000_000,
            "claimed_ago_ms": None,
            "settled_ago_ms": None,
            "counters": {"done": 1},
            **fields,
        }
    )


async def state_of(harness: Harness) -> str:
    (worker,) = await harness.driver.inspect.workers()
    return worker.state


async def test_a_worker_is_shown_as_it_told(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    instance = new_id()
    await harness.driver.beat(beat(instance=instance))
    await harness.advance(10 * SECOND)
    told = beat(
        instance=instance,
        running=2,
        free_slots=3,
        claimed_ago_ms=1_500,
        settled_ago_ms=500,
        counters={"done": 7, "lost": 1},
        listening=False,
        lease_ms=20_000,
    )
    assert await harness.driver.beat(told) is WorkerOrder.NONE
    (seen,) = await harness.driver.inspect.workers()
    assert (seen.worker_id, seen.instance, seen.host, seen.pid) == ("w-1", instance, "host-1", 42)
    assert (seen.version, seen.code_version, seen.environment) == ("0.1.0", "2026.1", "prod")
    assert (seen.queues, seen.names, seen.concurrency) == (("default",), ("charge", "refund"), 5)
    assert (seen.running, seen.free_slots, seen.loop_lag_ms, seen.rss_bytes) == (2, 3, 3, 1_000_000)
    assert (seen.started_at, seen.heartbeat_at) == (now, now + 10 * SECOND)
    assert (seen.claimed_at, seen.settled_at) == (now + 8.5 * SECOND, now + 9.5 * SECOND)
    assert (dict(seen.counters), seen.listening, seen.state) == ({"done": 7, "lost": 1}, False, "healthy")
    assert seen.lease_ms == 20_000


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"running": 1}, "healthy"),
        ({"running": 0}, "idle"),
        ({"running": 1, "wedged": True}, "wedged"),
        ({"running": 1, "state": "draining"}, "draining"),
        ({"running": 0, "state": "drained"}, "drained"),
        ({"running": 0, "state": "stopped"}, "drained"),
    ],
)
async def test_the_state_of_a_worker(harness: Harness, fields: dict[str, object], state: str) -> None:
    await harness.driver.beat(beat(**fields))
    assert await state_of(harness) == state


async def test_a_worker_that_stopped_in_good_order_is_told_from_one_that_fell_silent(harness: Harness) -> None:
    await harness.driver.beat(beat(state="stopped"))
    (stopped,) = await harness.driver.inspect.workers()
    assert (stopped.state, stopped.stopped_at, stopped.ended) == ("drained", await harness.driver.inspect.now(), True)
    await harness.advance(60 * SECOND)
    assert await state_of(harness) == "drained"
    await harness.driver.beat(beat("w-2", state="drained"))
    standing = next(w for w in await harness.driver.inspect.workers() if w.worker_id == "w-2")
    assert (standing.state, standing.ended) == ("drained", False)


async def test_a_silent_worker_is_gone_and_serves_nothing(harness: Harness) -> None:
    job_id = await put(harness)
    told = beat(lease_ms=30_000, free_slots=0)
    await harness.driver.beat(told)
    assert (await row(harness, job_id)).waiting_on == "slot"
    await harness.advance(29 * SECOND)
    assert await state_of(harness) == "idle"
    await harness.advance(2 * SECOND)
    assert await state_of(harness) == "gone"
    assert (await row(harness, job_id)).waiting_on == "no-worker"
    (queue,) = await harness.driver.inspect.queues()
    assert (queue.state, queue.workers) == ("unserved", 0)
    await harness.driver.beat(told)
    assert await state_of(harness) == "idle"


async def test_a_name_that_no_worker_runs_waits_for_one(harness: Harness) -> None:
    await harness.driver.beat(beat(free_slots=0))
    known, unknown, elsewhere = await put(harness), await put(harness, "pack"), await put(harness, queue="other")
    seen = [(await row(harness, job_id)).waiting_on for job_id in (known, unknown, elsewhere)]
    assert seen == ["slot", "no-worker", "no-worker"]


@pytest.mark.parametrize("state", ["draining", "drained", "stopped"])
async def test_a_worker_that_claims_no_more_serves_nothing(harness: Harness, state: str) -> None:
    job_id = await put(harness)
    told = beat()
    await harness.driver.beat(told)
    assert (await row(harness, job_id)).waiting_on is None
    await harness.driver.beat(beat(instance=told.instance, state=state))
    assert (await row(harness, job_id)).waiting_on == "no-worker"
    (queue,) = await harness.driver.inspect.queues()
    assert (queue.state, queue.workers, queue.capacity) == ("unserved", 0, 0)


async def test_a_full_fleet_is_told_as_such(harness: Harness) -> None:
    job_id = await put(harness)
    first, second = beat("w-1", free_slots=0), beat("w-2", free_slots=0)
    for told in (first, second):
        await harness.driver.beat(told)
    assert (await row(harness, job_id)).waiting_on == "slot"
    await harness.driver.beat(beat("w-2", second.instance, free_slots=1))
    assert (await row(harness, job_id)).waiting_on is None


async def test_an_order_reaches_every_live_worker_of_that_name(harness: Harness) -> None:
    first, second, other = beat("w-1"), beat("w-1"), beat("w-2")
    stopped = beat("w-1", state="stopped")
    for told in (first, second, other, stopped):
        assert await harness.driver.beat(told) is WorkerOrder.NONE
    assert await harness.driver.order_worker("w-1", WorkerOrder.DRAIN) == 2
    assert await harness.driver.order_worker("w-9", WorkerOrder.DRAIN) == 0
    answers = [await harness.driver.beat(told) for told in (first, second, other)]
    assert answers == [WorkerOrder.DRAIN, WorkerOrder.DRAIN, WorkerOrder.NONE]
    assert await harness.driver.order_worker("w-1", WorkerOrder.EXIT) == 2
    assert await harness.driver.beat(first) is WorkerOrder.EXIT
    assert await harness.driver.order_worker("w-1", WorkerOrder.NONE) == 2
    assert await harness.driver.beat(first) is WorkerOrder.NONE


async def test_workers_long_gone_are_forgotten(harness: Harness) -> None:
    await harness.driver.beat(beat("w-old"))
    await harness.advance(timedelta(hours=12))
    await harness.driver.beat(beat("w-new"))
    await harness.driver.housekeep()
    assert len(await harness.driver.inspect.workers()) == 2
    await harness.advance(timedelta(hours=13))
    await harness.driver.housekeep()
    assert [worker.worker_id for worker in await harness.driver.inspect.workers()] == ["w-new"]


async def test_the_lease_keeper_may_tell_for_a_worker_that_cannot(harness: Harness) -> None:
    instance = new_id()
    await harness.driver.beat(beat(instance=instance))
    await harness.driver.order_worker("w-1", WorkerOrder.DRAIN)
    link = harness.driver.lease_link()
    await link.open()
    try:
        assert await link.beat(beat(instance=instance, wedged=True)) is WorkerOrder.DRAIN
    finally:
        await link.close()
    assert await state_of(harness) == "wedged"
