"""A task that fails fails alone, and what is asked for goes the way of every enqueue."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from tests.support.eventually import eventually
from tests.unit.scheduler.conftest import MINUTE, Scan, World, every_minute, one_round, scan, scan_of
from ultijobs import App, job, task
from ultijobs._definitions.ambient import current_application
from ultijobs._queue.where import ANY
from ultijobs._scheduler import firing
from ultijobs.errors import DriverUnavailable

SECOND = timedelta(seconds=1)


def broken_until(world: World, minute: int):
    @task(cron="* * * * *", tz="UTC", name="a")
    def a(occurrence):
        if world.clock.time < datetime(2026, 6, 1, 12, minute, tzinfo=UTC):
            raise ValueError("no\x00 \udc80 today")
        return [scan_of(occurrence)]

    return a


def healthy():
    @task(cron="* * * * *", tz="UTC", name="b")
    def b(occurrence):
        return [scan_of(occurrence)]

    return b


async def test_a_task_that_raises_stops_no_other_and_tells_of_each_occurrence_once(world: World):
    rounds = await world.scheduler(broken_until(world, 11), healthy())
    await one_round(rounds)
    for _ in range(10 * 12):
        world.passes(5 * SECOND)
        await one_round(rounds)
    assert len(await world.occurrences("b")) == 10
    told = world.said("jobs.scheduler.tick-failed", logging.ERROR)
    assert len(told) == 10
    assert all("task a" in line and "ValueError" in line for line in told)
    error = (await world.state("a")).last_error
    assert error == "ValueError: no\\x00 \\udc80 today"
    world.passes(MINUTE)
    await one_round(rounds)
    assert await world.occurrences("a") == ["2026-06-01T12:11:00"]
    assert (await world.state("a")).last_error is None


async def test_a_failure_that_is_over_is_made_up_for_before_the_next_occurrence(world: World):
    fails = 2

    @task(cron="0 13 * * *", tz="UTC")
    def daily(occurrence):
        nonlocal fails
        fails -= 1
        if fails >= 0:
            raise ConnectionError("the service is away")
        return [scan_of(occurrence)]

    rounds = await world.scheduler(daily)
    await one_round(rounds)
    world.passes(timedelta(hours=1))
    for _ in range(60):
        await one_round(rounds)
        world.passes(SECOND)
    assert await world.occurrences("daily") == ["2026-06-01T13:00:00"]
    assert len(world.said("jobs.scheduler.tick-failed")) == 1


@pytest.mark.parametrize("answer", [None, 5, "scan", [1], [None]])
async def test_an_answer_that_is_no_list_of_requests_is_an_error_of_the_task(world: World, answer):
    @task(cron="* * * * *", tz="UTC")
    def odd(occurrence):
        return answer

    rounds = await world.scheduler(odd, healthy())
    await one_round(rounds)
    world.passes(MINUTE)
    await one_round(rounds)
    assert "X_INVARIANT: task odd answered" in ((await world.state("odd")).last_error or "")
    assert len(await world.occurrences("b")) == 1


class Bill(BaseModel):
    org: str


@job(Bill, idempotency_key=lambda i: i.org, tenant=lambda i: i.org, priority=3)
async def bill(input: Bill) -> None: ...


async def test_a_request_goes_the_way_of_every_enqueue(world: World):
    @task(cron="* * * * *", tz="UTC")
    def bills(occurrence):
        yield bill.request(Bill(org="acme"))
        yield bill.request(Bill(org="bolt"), max_attempts=7, priority=9)
        yield bill.request(Bill(org="cask"), delay="5m")

    rounds = await world.scheduler(bills, jobs=[bill])
    await one_round(rounds)
    world.passes(MINUTE)
    await one_round(rounds)
    first, second, third = (await world.driver.inspect.jobs(ANY)).rows[::-1]
    slot = datetime(2026, 6, 1, 12, 1, tzinfo=UTC)
    assert first.idempotency_key == "bills:2026-06-01T12:01:00Z:acme"
    assert first.enqueued_by == "task:bills"
    assert (first.tenant_id, first.priority, first.run_at, first.state) == ("acme", 3, slot, "ready")
    assert (second.tenant_id, second.priority, second.max_attempts) == ("bolt", 9, 7)
    assert (third.run_at, third.state) == (slot + 5 * MINUTE, "delayed")
    (ledger,) = await world.slots("bills")
    assert ledger.job_ids == (first.id, second.id, third.id)


async def test_a_slot_is_stored_whole_or_not_at_all(world: World):
    @task(cron="* * * * *", tz="UTC")
    def bills(occurrence):
        return [bill.request(Bill(org="acme")), bill.request(Bill(org="")), bill.request(Bill(org="bolt"))]

    rounds = await world.scheduler(bills, jobs=[bill])
    await one_round(rounds)
    world.passes(MINUTE)
    await one_round(rounds)
    assert await world.jobs() == []
    assert await world.slots("bills") == []
    assert "X_INVARIANT" in ((await world.state("bills")).last_error or "")


async def test_a_job_that_is_not_registered_is_an_error_of_the_task(world: World):
    rounds = await world.scheduler(every_minute(), jobs=[bill])
    await one_round(rounds)
    world.passes(MINUTE)
    await one_round(rounds)
    assert "scan" in ((await world.state("minutely")).last_error or "")
    assert await world.jobs() == []


async def test_the_application_is_ambient_in_async_and_in_threaded_functions(world: World):
    seen = {}

    @task(cron="* * * * *", tz="UTC")
    async def on_the_loop(occurrence):
        seen["loop"] = (current_application(), threading.current_thread() is threading.main_thread())
        return []

    @task(cron="* * * * *", tz="UTC")
    def in_a_thread(occurrence):
        seen["thread"] = (current_application(), threading.current_thread() is threading.main_thread())
        return ()

    rounds = await world.scheduler(on_the_loop, in_a_thread)
    await one_round(rounds)
    world.passes(MINUTE)
    await one_round(rounds)
    assert seen["loop"][0] is seen["thread"][0] is not None
    assert (seen["loop"][1], seen["thread"][1]) == (True, False)
    assert len(await world.slots("in_a_thread")) == 1


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_function_that_hangs_holds_up_no_other_and_is_not_called_beside_itself(world, monkeypatch, kind):
    monkeypatch.setattr(firing, "ANSWERS_WITHIN", 0.05)
    calls = 0
    released = threading.Event()

    @task(cron="* * * * *", tz="UTC", name="hangs")
    async def hangs_async(occurrence):
        nonlocal calls
        calls += 1
        await asyncio.sleep(3600)
        return []

    @task(cron="* * * * *", tz="UTC", name="hangs")
    def hangs_sync(occurrence):
        nonlocal calls
        calls += 1
        released.wait(30)
        return []

    rounds = await world.scheduler(hangs_async if kind == "async" else hangs_sync, healthy())
    await one_round(rounds)
    for _ in range(3):
        world.passes(MINUTE)
        await rounds.round()
        await eventually(lambda: rounds._busy == {})
    assert len(await world.occurrences("b")) == 3
    assert "X_TIMEOUT" in ((await world.state("hangs")).last_error or "")
    assert calls == (3 if kind == "async" else 1)
    released.set()
    await rounds.leave()


async def test_a_database_that_is_away_is_no_error_of_the_task(world: World, monkeypatch):
    rounds = await world.scheduler(every_minute())
    await one_round(rounds)
    world.passes(MINUTE)

    async def away(*_args):
        raise DriverUnavailable("memory is away")

    with monkeypatch.context() as patched:
        patched.setattr(world.driver.schedule, "dispatch", away)
        await one_round(rounds)
        assert (await world.state("minutely")).last_error is None
    await one_round(rounds)
    assert await world.occurrences("minutely") == ["2026-06-01T12:01:00"]


async def test_running_a_task_by_hand_asks_for_its_jobs_under_their_plain_keys(world: World):
    @task(cron="@yearly", tz="Europe/Berlin")
    async def both(occurrence):
        assert str(occurrence.tzinfo) == "Europe/Berlin"
        return [scan.request(Scan(at="x")), bill.request(Bill(org="acme")), scan.request(Scan(at="y"))]

    async with App(jobs=[scan, bill], tasks=[both], driver=world.driver):
        answers = await both.enqueue()
        again = await both.enqueue()
    assert [each.deduped for each in [*answers, *again]] == [False] * 3 + [True] * 3
    assert sorted(await world.jobs()) == [("bill", "acme"), ("scan", "x"), ("scan", "y")]
    assert await world.slots("both") == []
