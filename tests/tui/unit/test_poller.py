"""One refresh at a time, within a budget, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.support.eventually import eventually
from tests.support.jumping import jumping
from tests.tui.fake import FakeSource
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.link import Link, LinkState
from ultijobs_tui.poller import Budget, Poller

QUICK = Budget(interval=0.05, min_gap=0.02, deadline=0.2, duty=1.0, blurred=5.0)


class Rig:
    def __init__(self, source: FakeSource, budget: Budget = QUICK) -> None:
        self.source = source
        self.needs = Needs(overview=True)
        self.frames: list[Frame] = []
        clock = asyncio.get_running_loop().time
        self.link = Link(clock, jitter=lambda: 0.02)
        self.poller = Poller(
            source,
            self.link,
            ask=lambda: self.needs,
            on_frame=self.frames.append,
            on_link=lambda: None,
            budget=budget,
            monotonic=clock,
        )


@asynccontextmanager
async def running(source: FakeSource, budget: Budget = QUICK) -> AsyncGenerator[Rig]:
    rig = Rig(source, budget)
    task = asyncio.ensure_future(rig.poller.run())
    try:
        yield rig
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_it_fetches_what_the_screen_asks_again_and_again(source: FakeSource) -> None:
    async with running(source) as rig:
        await eventually(lambda: len(rig.frames) >= 3)
    assert {frame.needs for frame in rig.frames} == {Needs(overview=True)}


def test_five_hundred_hints_make_one_fetch_each_time_the_budget_allows(source: FakeSource) -> None:
    async def body() -> None:
        async with running(source, Budget(interval=3_000, min_gap=30, deadline=1, duty=1)) as rig:
            for seconds in (1, 28, 2, 28, 2):
                for _ in range(500):
                    rig.poller.hint()
                    await asyncio.sleep(0)
                await asyncio.sleep(seconds)
                counted.append(len(source.fetched))

    counted: list[int] = []
    jumping(body())
    assert counted == [1, 1, 2, 2, 3]


async def test_a_lost_connection_keeps_trying_and_comes_back(source: FakeSource) -> None:
    async with running(source) as rig:
        await eventually(lambda: bool(rig.frames))
        source.error = OSError("connection refused")
        await eventually(lambda: rig.link.failures >= 3)
        assert rig.link.state is LinkState.LOST
        source.error = None
        await eventually(lambda: rig.link.state is LinkState.LIVE)


async def test_a_bug_in_a_refresh_does_not_end_the_loop(source: FakeSource) -> None:
    async with running(source) as rig:
        source.error = ValueError("not a number")
        await eventually(lambda: rig.link.failures >= 1)
        source.error = None
        await eventually(lambda: rig.link.state is LinkState.LIVE)


async def test_a_fetch_that_hangs_is_given_up_at_the_deadline(source: FakeSource) -> None:
    source.hangs = True
    async with running(source) as rig:
        await eventually(lambda: rig.link.failures >= 1)
        assert isinstance(rig.link.error, TimeoutError)
        source.hangs = False
        await eventually(lambda: rig.link.state is LinkState.LIVE)


def test_frozen_asks_nothing_and_live_asks_at_once(source: FakeSource) -> None:
    async def body() -> None:
        async with running(source) as rig:
            await asyncio.sleep(1)
            rig.link.frozen = True
            rig.poller.poke()
            asked = len(source.fetched)
            assert asked > 1
            for _ in range(60):
                rig.poller.hint()
                await asyncio.sleep(60)
            assert rig.link.state is LinkState.FROZEN
            assert len(source.fetched) == asked
            rig.link.frozen = False
            rig.poller.poke()
            await asyncio.sleep(0)
            await asyncio.sleep(QUICK.min_gap)
            assert len(source.fetched) > asked

    jumping(body())


def test_without_focus_the_database_is_asked_rarely_and_with_it_at_once(source: FakeSource) -> None:
    async def body() -> None:
        async with running(source, Budget(duty=0)) as rig:
            await asyncio.sleep(10)
            assert 10 <= len(source.fetched) <= 11
            rig.poller.blurred = True
            await asyncio.sleep(1)
            asked = len(source.fetched)
            await asyncio.sleep(100)
            assert 9 <= len(source.fetched) - asked <= 11
            rig.poller.blurred = False
            asked = len(source.fetched)
            rig.poller.poke()
            await asyncio.sleep(rig.poller.budget.min_gap)
            assert len(source.fetched) == asked + 1

    jumping(body())


async def test_a_screen_that_is_left_drops_its_fetch_and_the_next_one_is_asked_at_once(source: FakeSource) -> None:
    source.hangs = True
    async with running(source, Budget(interval=30, min_gap=0.01, deadline=30)) as rig:
        await eventually(lambda: len(source.fetched) == 1)
        source.hangs = False
        rig.needs = Needs(queues=True)
        rig.poller.poke()
        await eventually(lambda: bool(rig.frames))
    assert [frame.needs for frame in rig.frames] == [Needs(queues=True)]
    assert rig.link.failures == 0


async def test_a_slow_database_is_asked_for_a_twentieth_of_the_time() -> None:
    clock = [0.0]

    class Slow(FakeSource):
        async def fetch(self, needs: Needs) -> Frame:
            clock[0] += 0.05
            return await super().fetch(needs)

    source = Slow()
    link = Link(lambda: clock[0])
    poller = Poller(source, link, ask=Needs, on_frame=lambda _: None, on_link=lambda: None, monotonic=lambda: clock[0])
    delay, floor = await poller._once()
    assert (round(delay, 3), round(floor, 3)) == (1.0, 1.0)
    assert round(poller.share, 3) == 0.048


def test_delays_double_up_to_half_a_minute() -> None:
    link = Link(lambda: 0.0, jitter=lambda: 1.0)
    assert [link.failed(OSError()) for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
