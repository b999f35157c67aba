"""The claim loop: when it claims, for how many, and what makes it wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.unit.worker.flights import claimed
from ultijobs._definitions.bounds import Limits
from ultijobs._queue.claims import ClaimAsk, ClaimedJob, Settlement, Verdict
from ultijobs._service.trouble import Trouble
from ultijobs._worker.caps import Caps
from ultijobs._worker.claim import Claimer, Hold
from ultijobs._worker.flight import Roster
from ultijobs._worker.limiter import Limiter
from ultijobs._worker.losses import Losses
from ultijobs._worker.settle import Settler
from ultijobs._worker.tally import Tally
from ultijobs.errors import DriverUnavailable
from ultijobs.memory import MemoryDriver


class FakeDriver:
    """Hands out as many rows as it has."""

    def __init__(self) -> None:
        self.rows = 0
        self.given = 0
        self.asks: list[ClaimAsk] = []
        self.times: list[float] = []
        self.trouble: Exception | None = None
        self.due: timedelta | None = None
        self.due_asked = 0

    async def claim(self, ask: ClaimAsk) -> list[ClaimedJob]:
        self.asks.append(ask)
        self.times.append(time.monotonic())
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble
        given = min(self.rows, ask.limit)
        self.rows -= given
        self.given += given
        return [claimed(self.given - number) for number in range(given)]

    async def next_due(self, queues: Sequence[str], names: Sequence[str], **_: Any) -> timedelta | None:
        self.due_asked += 1
        return self.due


class Rig:
    def __init__(self, **options: Any) -> None:
        self.driver = FakeDriver()
        self.started: list[tuple[ClaimedJob, float]] = []

        async def settle(batch: Sequence[Settlement]) -> list[Verdict]:
            return [Verdict.SETTLED for _ in batch]

        tally, trouble = Tally(), Trouble("w")
        driver: Any = self.driver
        self.claimer = Claimer(
            driver,
            **{
                "worker_id": "w",
                "queues": ("a", "b", "c"),
                "names": ("mail",),
                "limiter": Limiter(Limits(), concurrency=10),
                "caps": Caps(driver, queues=("a", "b", "c"), names=("mail",), declared={}),
                "lease": timedelta(seconds=30),
                "poll": timedelta(seconds=60),
                "settler": Settler(
                    settle,
                    lease=timedelta(seconds=30),
                    roster=Roster(),
                    tally=tally,
                    losses=Losses(MemoryDriver().telemetry, tally, trouble, "w"),
                    trouble=trouble,
                    worker_id="w",
                    landed=lambda _: None,
                    ended=lambda *_: None,
                ),
                "tally": tally,
                "trouble": trouble,
                "start": lambda jobs, ends: self.started.extend((job, ends) for job in jobs),
                **options,
            },
        )
        self.task: asyncio.Task[None] | None = None

    def run(self) -> None:
        self.task = asyncio.create_task(self.claimer.run())

    async def close(self) -> None:
        if self.task is not None:
            self.claimer.stop()
            await asyncio.wait_for(self.task, 5)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.close()


async def test_it_claims_for_all_free_slots_and_stops_at_the_last(rig: Rig):
    rig.driver.rows = 25
    rig.run()
    await eventually(lambda: len(rig.started) == 10)
    assert [ask.limit for ask in rig.driver.asks] == [10]
    assert rig.claimer.free == 0
    rig.claimer.slot_freed(rig.started[0][0])
    await eventually(lambda: len(rig.started) == 11)
    assert rig.driver.asks[-1].limit == 1, "a single slot is refilled"


async def test_slots_that_are_freed_together_are_refilled_by_one_claim(rig: Rig):
    rig.driver.rows = 25
    rig.run()
    await eventually(lambda: len(rig.started) == 10)
    for job, _ in rig.started[:4]:
        rig.claimer.slot_freed(job)
    await eventually(lambda: len(rig.started) == 14)
    assert [ask.limit for ask in rig.driver.asks] == [10, 4]


async def test_without_work_it_waits_for_a_hint_and_not_in_a_loop(rig: Rig):
    rig.run()
    await eventually(lambda: rig.driver.due_asked)
    assert len(rig.driver.asks) == 1
    rig.driver.rows = 1
    rig.claimer.hint()
    await eventually(lambda: rig.started)
    assert len(rig.driver.asks) == 2


async def test_a_hint_during_a_claim_is_not_lost(rig: Rig):
    rig.run()
    await eventually(lambda: rig.driver.asks)
    rig.claimer.hint()
    await eventually(lambda: len(rig.driver.asks) >= 2)


async def test_it_wakes_when_the_next_row_becomes_due(rig: Rig):
    rig.driver.due = timedelta(seconds=0.3)
    rig.run()
    await eventually(lambda: rig.driver.due_asked)
    rig.driver.rows = 1
    began = time.monotonic()
    await eventually(lambda: rig.started)
    assert time.monotonic() - began >= 0.1


async def test_a_due_time_that_nobody_may_claim_is_no_hot_loop(rig: Rig):
    rig.driver.due = timedelta(0)
    rig.run()
    await eventually(lambda: len(rig.driver.asks) >= 5)
    gaps = [later - sooner for sooner, later in zip(rig.driver.times, rig.driver.times[1:], strict=False)]
    assert gaps[3] > gaps[0]


async def test_without_hints_it_polls():
    rig = Rig(poll=timedelta(seconds=0.1))
    rig.run()
    await eventually(lambda: len(rig.driver.asks) >= 4)
    await rig.close()
    gaps = [later - sooner for sooner, later in zip(rig.driver.times, rig.driver.times[1:], strict=False)]
    assert all(gap >= 0.09 for gap in gaps)


async def test_the_order_of_the_queues_rotates(rig: Rig):
    rig.run()
    for number in (1, 2, 3):
        await eventually(lambda number=number: len(rig.driver.asks) >= number)
        rig.claimer.hint()
    assert [next(iter(ask.queues)) for ask in rig.driver.asks[:3]] == ["b", "c", "a"]
    assert all(set(ask.queues.values()) == {10} for ask in rig.driver.asks)


async def test_the_lease_counts_from_before_the_claim_was_sent(rig: Rig):
    rig.driver.rows = 1
    before = time.monotonic()
    rig.run()
    await eventually(lambda: rig.started)
    assert rig.started[0][1] <= before + 30 - 2 + 1.0
    assert rig.started[0][1] <= rig.driver.times[0] + 28.0


async def test_a_database_that_is_away_is_one_line_and_a_growing_wait(rig: Rig, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "ultijobs")
    rig.driver.trouble = DriverUnavailable("away")
    rig.run()
    await eventually(lambda: len(rig.driver.asks) >= 4)
    rig.driver.trouble = None
    rig.driver.rows = 1
    await eventually(lambda: rig.started)
    events = [str(getattr(record, "event", "")) for record in caplog.records]
    assert events == ["jobs.database.away", "jobs.database.back"]
    gaps = [later - sooner for sooner, later in zip(rig.driver.times, rig.driver.times[1:], strict=False)]
    assert gaps[2] > gaps[0]


async def test_a_paused_claimer_claims_nothing_until_it_goes_on(rig: Rig):
    rig.claimer.hold(Hold.ORDER)
    rig.claimer.hold(Hold.LEASES)
    rig.driver.rows = 3
    rig.run()
    rig.claimer.hint()
    await asyncio.sleep(0)
    assert rig.driver.asks == []
    rig.claimer.release(Hold.ORDER)
    for _ in range(20):
        await asyncio.sleep(0)
    assert rig.driver.asks == [], "the other reason still holds"
    rig.claimer.release(Hold.LEASES)
    await eventually(lambda: len(rig.started) == 3)


async def test_what_it_must_leave_alone_is_named_in_the_claim(rig: Rig):
    left = claimed(1).id
    rig.claimer.leave_alone(left)
    rig.run()
    await eventually(lambda: rig.driver.asks)
    assert rig.driver.asks[0].skip == {left}


async def test_a_row_that_becomes_due_sooner_than_known_is_not_missed(rig: Rig):
    rig.driver.due = timedelta(hours=1)
    rig.run()
    await eventually(lambda: rig.driver.due_asked == 1)
    rig.driver.due = timedelta(seconds=0.2)
    rig.claimer.due_changed()
    await eventually(lambda: rig.driver.due_asked == 2)
    rig.driver.rows = 1
    await eventually(lambda: rig.started)


async def test_a_stop_while_it_waits_for_settlements_sends_no_claim(rig: Rig):
    gate = asyncio.Event()

    async def below(_: int) -> None:
        await gate.wait()

    rig.claimer._settler.below = below
    rig.driver.rows = 1
    rig.run()
    await asyncio.sleep(0)
    rig.claimer.stop()
    gate.set()
    await rig.close()
    assert rig.driver.asks == []
