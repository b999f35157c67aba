"""Hints: who listens hears of new work, of cancels and of orders, on the loop where it listens."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.contract.harness import Harness
from tests.contract.moves import bring_to, end, job, put, put_and_take, retry
from tests.contract.test_workers import beat
from tests.support.eventually import eventually
from ultijobs._queue.records import JobState, Outcome, UniqueMode
from ultijobs._queue.telling import Signal, SignalKind, WorkerOrder

DEFAULT = Signal(SignalKind.QUEUE, "default")


class Listener:
    def __init__(self) -> None:
        self.heard: list[Signal] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()

    def __call__(self, signal: Signal) -> None:
        self.heard.append(signal)
        self.loops.add(asyncio.get_running_loop())

    async def hears(self, signal: Signal) -> None:
        await eventually(lambda: signal in self.heard, that=f"{signal} in {self.heard}")
        self.heard.clear()


async def test_new_work_is_told_by_its_queue(harness: Harness) -> None:
    listener = Listener()
    async with (await harness.second()).subscribe(listener):
        await put(harness)
        await listener.hears(DEFAULT)
        await harness.driver.enqueue([job(queue="other"), job(queue="other")])
        await listener.hears(Signal(SignalKind.QUEUE, "other"))
        assert listener.loops == {asyncio.get_running_loop()}


async def test_a_commit_tells_what_its_transaction_enqueued(harness: Harness) -> None:
    listener = Listener()
    async with harness.driver.subscribe(listener):
        async with harness.driver.transaction() as tx:
            await harness.driver.enqueue([job()], tx=tx)
        await listener.hears(DEFAULT)


async def test_a_retry_and_a_resume_are_told(harness: Harness) -> None:
    job_id = await bring_to(harness, JobState.DEAD)
    listener = Listener()
    async with harness.driver.subscribe(listener):
        await retry(harness, [job_id])
        await listener.hears(DEFAULT)
        await harness.driver.pause("default", actor="alice", reason=None, duration=None)
        listener.heard.clear()
        await harness.driver.resume("default")
        await listener.hears(DEFAULT)


async def test_a_freed_twin_is_told(harness: Harness) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    listener = Listener()
    async with harness.driver.subscribe(listener):
        await end(harness, first)
        await listener.hears(DEFAULT)


async def test_work_that_was_handed_back_is_told(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    listener = Listener()
    async with harness.driver.subscribe(listener):
        await end(harness, claimed, Outcome.RETURNED)
        await listener.hears(DEFAULT)


async def test_the_cancel_of_a_running_job_is_told_by_its_id(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    listener = Listener()
    async with harness.driver.subscribe(listener):
        await harness.driver.cancel([claimed.id])
        await listener.hears(Signal(SignalKind.CANCEL, str(claimed.id)))


async def test_an_order_is_told_by_the_worker_s_name(harness: Harness) -> None:
    await harness.driver.beat(beat("w-7"))
    listener = Listener()
    async with harness.driver.subscribe(listener):
        await harness.driver.order_worker("w-7", WorkerOrder.DRAIN)
        await listener.hears(Signal(SignalKind.WORKER, "w-7"))


async def test_after_its_end_a_subscription_hears_nothing(harness: Harness) -> None:
    gone, stays = Listener(), Listener()
    async with harness.driver.subscribe(stays):
        async with harness.driver.subscribe(gone):
            pass
        await put(harness, delay=timedelta(0))
        await stays.hears(DEFAULT)
    assert gone.heard == []


async def test_two_subscriptions_both_hear(harness: Harness) -> None:
    first, second = Listener(), Listener()
    async with harness.driver.subscribe(first), harness.driver.subscribe(second):
        await put(harness)
        await first.hears(DEFAULT)
        await second.hears(DEFAULT)
