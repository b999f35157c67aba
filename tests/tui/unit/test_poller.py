"""One refresh at a time, within a budget, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.support.eventually import eventually
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
        self.link = Link(asyncio.get_running_loop().time, jitter=lambda: 0.02)
        self.poller = Poller(
            source,
            self.link,
            ask=lambda: self.needs,
            on_frame=self.frames.append,
            on_link=lambda: None,
            budget=budget,
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


async def test_five_hundred_hints_make_two_fetches_at_the_most(source: FakeSource) -> None:
    async with running(source, Budget(interval=30, min_gap=0.3, deadline=1, duty=1)) as rig:
        await eventually(lambda: len(source.fetched) == 1)
        for _ in range(500):
            rig.poller.hint()
        await eventually(lambda: len(source.fetched) == 2)
        for _ in range(500):
            rig.poller.hint()
            await asyncio.sleep(0)
        assert len(source.fetched) == 2


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


async def test_frozen_asks_nothing_and_live_asks_at_once(source: FakeSource) -> None:
    async with running(source) as rig:
        await eventually(lambda: bool(rig.frames))
        rig.link.frozen = True
        rig.poller.poke()
        await eventually(lambda: rig.link.state is LinkState.FROZEN)
        await asyncio.sleep(0.1)
        asked = len(source.fetched)
        await asyncio.sleep(0.2)
        assert len(source.fetched) == asked
        rig.link.frozen = False
        rig.poller.poke()
        await eventually(lambda: len(source.fetched) > asked)


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
