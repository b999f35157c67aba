"""`run_until_idle`: all that is due and what becomes due by it, and not a second of waiting for the rest."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from ultijobs import App, RetryPolicy, Step, Worker, job
from ultijobs._queue.claims import ClaimAsk, ClaimedJob
from ultijobs.errors import DriverUnavailable
from ultijobs.memory import MemoryDriver

AT_ONCE = RetryPolicy(attempts=3, delay=0, jitter=False)


class Ask(BaseModel):
    key: str


class FrozenClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self._moved = timedelta(0)
        self._start = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._start + self._moved

    def monotonic(self) -> float:
        return self._moved.total_seconds()

    def advance(self, by: timedelta) -> None:
        self._moved += by


ran: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()


@job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", retry=AT_ONCE)
async def leaf(input: Ask) -> None:
    ran.append(input.key)


@job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", retry=AT_ONCE)
async def parent(input: Ask) -> None:
    ran.append(input.key)
    for number in range(3):
        await leaf.enqueue(Ask(key=f"{input.key}-{number}"))


@job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", retry=AT_ONCE)
async def third_time(input: Ask) -> None:
    ran.append(input.key)
    if ran.count(input.key) < 3:
        raise RuntimeError("not yet")


@job(Ask, idempotency_key=lambda ask: ask.key, tenant="none")
async def sleeps_long(input: Ask, step: Step) -> None:
    ran.append("before")
    await step.sleep("3d")
    ran.append("after")


@job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", queue="held")
async def on_hold(input: Ask) -> None:
    ran.append(input.key)


JOBS = [leaf, parent, third_time, sleeps_long, on_hold]


async def test_what_is_due_runs_with_all_that_it_enqueues_and_retries_at_once():
    async with App(jobs=JOBS, driver=MemoryDriver()) as app:
        await parent.enqueue(Ask(key="p"))
        await third_time.enqueue(Ask(key="t"))
        began = time.monotonic()
        await Worker(app, concurrency=2).run_until_idle()
        assert time.monotonic() - began < 30
    assert sorted(ran) == ["p", "p-0", "p-1", "p-2", "t", "t", "t"]


async def test_what_is_delayed_suspended_or_paused_stays_and_time_makes_it_due():
    clock = FrozenClock()
    driver = MemoryDriver(clock)
    async with App(jobs=JOBS, driver=driver) as app:
        worker = Worker(app)
        await leaf.enqueue(Ask(key="later"), delay="1h")
        await on_hold.enqueue(Ask(key="held"))
        await sleeps_long.enqueue(Ask(key="s"))
        await driver.pause("held", actor="me", reason=None, duration=None)
        await worker.run_until_idle()
        assert ran == ["before"]
        clock.advance(timedelta(hours=1))
        await worker.run_until_idle()
        assert ran == ["before", "later"]
        clock.advance(timedelta(days=3))
        await driver.resume("held")
        await worker.run_until_idle()
        assert sorted(ran[2:]) == ["after", "before", "held"]


async def test_what_another_worker_left_behind_is_delivered_once_its_lease_has_lapsed():
    clock = FrozenClock()
    driver = MemoryDriver(clock)
    async with App(jobs=JOBS, driver=driver) as app:
        await leaf.enqueue(Ask(key="orphan"))
        await driver.claim(ClaimAsk("gone", {"default": 1}, ("leaf",), 1, timedelta(seconds=30)))
        clock.advance(timedelta(seconds=31))
        worker = Worker(app)
        await worker.run_until_idle()
        assert ran == ["orphan"]


async def test_it_waits_for_what_another_worker_runs():
    driver = MemoryDriver()
    async with App(jobs=JOBS, driver=driver) as app:
        await leaf.enqueue(Ask(key="theirs"))
        await driver.claim(ClaimAsk("other", {"default": 1}, ("leaf",), 1, timedelta(seconds=0.4)))
        began = time.monotonic()
        await Worker(app, poll="50ms").run_until_idle()
        assert time.monotonic() - began >= 0.35
        assert ran == ["theirs"]


class BrokenDriver(MemoryDriver):
    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        raise DriverUnavailable("the database is away")


async def test_a_database_that_fails_is_raised_and_not_waited_for():
    async with App(jobs=JOBS, driver=BrokenDriver()) as app:
        with pytest.raises(DriverUnavailable):
            await asyncio.wait_for(Worker(app).run_until_idle(), 5)


@pytest.mark.parametrize("method", ["run", "run_until_idle"])
async def test_a_worker_that_is_cancelled_hands_back_what_it_runs(method: str):
    driver = MemoryDriver()
    started = asyncio.Event()

    @job(Ask, idempotency_key=lambda ask: ask.key, tenant="none")
    async def waits(input: Ask) -> None:
        started.set()
        await asyncio.Event().wait()

    async with App(jobs=[waits], driver=driver) as app:
        asked = await waits.enqueue(Ask(key="k"))
        working = asyncio.create_task(getattr(Worker(app), method)())
        await asyncio.wait_for(started.wait(), 5)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(working, 5)
        row = await driver.inspect.job(asked.id)
    assert row is not None
    assert (row.state, row.attempt) == ("ready", 0)
