"""Opening and closing one driver from many places at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.eventually import eventually
from ultijobs._enqueue.opening import Opening
from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.memory import MemoryDriver


class Counted(MemoryDriver):
    """A driver that takes its time, counts, and may be away."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.opened = 0
        self.closed = 0
        self.away = False
        self.slow = asyncio.Event()
        self.slow.set()

    async def open(self, role: str = "app") -> None:
        self.begun += 1
        await asyncio.sleep(0)
        await self.slow.wait()
        if self.away:
            raise DriverUnavailable("away")
        self.opened += 1

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


async def test_many_at_once_open_it_once_and_the_last_closes_it():
    driver = Counted()
    opening = Opening(lambda: driver)
    await asyncio.gather(*(opening.enter() for _ in range(10)))
    assert driver.opened == 1
    await asyncio.gather(*(opening.leave() for _ in range(9)))
    assert (driver.closed, opening.here) == (0, True)
    await opening.leave()
    assert (driver.closed, opening.here, opening.closed) == (1, False, True)


async def test_one_that_enters_while_the_last_leaves_finds_it_open():
    driver = Counted()
    opening = Opening(lambda: driver)
    await opening.enter()
    await asyncio.gather(opening.leave(), opening.enter())
    assert opening.here
    await opening.leave()
    assert not opening.here
    assert driver.opened - driver.closed == 0


async def test_a_driver_that_is_away_leaves_the_place_free():
    driver = Counted()
    driver.away = True
    opening = Opening(lambda: driver)
    answers = await asyncio.gather(*(opening.enter() for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [DriverUnavailable] * 3
    driver.away = False
    await opening.enter()
    assert opening.here
    await opening.leave()


async def test_a_cancelled_opening_holds_nothing():
    driver = Counted()
    driver.slow.clear()
    opening = Opening(lambda: driver)
    first, second = asyncio.create_task(opening.enter()), asyncio.create_task(opening.enter())
    await eventually(lambda: driver.begun)
    second.cancel()
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    driver.slow.set()
    await opening.enter()
    await opening.leave()
    assert (driver.opened, opening.here) == (1, False)


async def test_a_second_loop_cannot_open_what_is_open():
    opening = Opening(Counted)
    await opening.enter()

    def on_another_loop() -> None:
        asyncio.run(opening.enter())

    with pytest.raises(Invariant, match="open on another loop"):
        await asyncio.to_thread(on_another_loop)
    await opening.leave()


def test_a_loop_that_ended_without_closing_does_not_hold_it_for_ever():
    opening = Opening(Counted)
    asyncio.run(opening.enter())

    async def again() -> None:
        await opening.enter()
        assert opening.here
        await opening.leave()

    asyncio.run(again())
