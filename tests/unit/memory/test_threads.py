"""The memory driver may be called from any thread and any loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from tests.support.eventually import eventually
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat, BeatAnswer, ClaimAsk, Settlement, Verdict
from ultijobs._queue.records import NewJob, Outcome
from ultijobs._queue.telling import Signal, SignalKind
from ultijobs._queue.where import ANY
from ultijobs.memory import MemoryDriver

THREADS = 8
ASK = ClaimAsk("w-1", {"default": 7}, ("charge",), 7, timedelta(seconds=30))


def job(**fields: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "name": "charge", "input": "null", **fields})


def on_threads(make: Any) -> list[Any]:
    """What `make()` answers on several threads at once, each with a loop of its own."""
    start = threading.Barrier(THREADS)

    def body(_: int) -> Any:
        start.wait()
        work: Coroutine[Any, Any, Any] = make()
        return asyncio.run(work)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(body, range(THREADS)))


def test_one_key_is_held_by_one_of_many_threads() -> None:
    driver = MemoryDriver()

    async def enqueue() -> list[bool]:
        answers = await driver.enqueue([job(idempotency_key=f"k-{n}") for n in range(20)])
        return [answer.deduped for answer in answers]

    deduped = on_threads(enqueue)
    assert [column.count(False) for column in zip(*deduped, strict=True)] == [1] * 20


def test_each_job_is_run_once_whoever_claims() -> None:
    driver = MemoryDriver()
    asyncio.run(driver.enqueue([job() for _ in range(400)]))

    async def drain() -> list[int]:
        numbers: list[int] = []
        while claimed := await driver.claim(ASK):
            link = driver.lease_link()
            assert set(await link.renew([Beat(c.id, c.lease_no) for c in claimed], ASK.lease)) == {BeatAnswer.HELD}
            settled = [Settlement(c.id, c.run_id, c.lease_no, Outcome.OK, 1, "w-1", c.queue) for c in claimed]
            assert set(await driver.settle(settled)) == {Verdict.SETTLED}
            numbers += [c.lease_no for c in claimed]
        return numbers

    numbers = Counter(number for some in on_threads(drain) for number in some)
    assert len(numbers) == 400
    assert set(numbers.values()) == {1}
    assert {found.state for found in asyncio.run(driver.inspect.jobs(ANY, limit=500)).rows} == {"done"}


async def test_a_hint_from_another_thread_arrives_on_the_listener_s_loop() -> None:
    driver = MemoryDriver()
    heard: list[tuple[Signal, asyncio.AbstractEventLoop]] = []
    async with driver.subscribe(lambda signal: heard.append((signal, asyncio.get_running_loop()))):
        await asyncio.to_thread(asyncio.run, driver.enqueue([job()]))
        await eventually(lambda: heard)
    assert heard == [(Signal(SignalKind.QUEUE, "default"), asyncio.get_running_loop())]


def test_a_listener_whose_loop_is_gone_stops_nobody() -> None:
    driver = MemoryDriver()

    async def leave() -> object:
        subscription = driver.subscribe(lambda _: None)
        await subscription.__aenter__()
        return subscription

    kept = asyncio.run(leave())
    (answer,) = asyncio.run(driver.enqueue([job()]))
    assert not answer.deduped
    del kept
