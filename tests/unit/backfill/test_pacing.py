"""The pace of pages, on a clock that is moved by hand."""

from __future__ import annotations

import pytest

from ultijobs._backfill.pacing import Pacer


class Hand:
    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


async def starts(rate: float, took: list[float]) -> tuple[list[float], Hand]:
    """When pages begin that take so long each, from the first one on."""
    hand = Hand()
    pacer = Pacer(rate, now=hand.now, sleep=hand.sleep)
    begun: list[float] = []
    for each in took:
        await pacer.turn()
        begun.append(hand.time - 100.0)
        hand.time += each
    return begun, hand


async def test_the_first_page_is_free_and_twenty_that_take_no_time_take_19_turns():
    begun, hand = await starts(5.0, [0.0] * 20)
    assert begun[0] == 0.0
    assert begun[-1] == pytest.approx(3.8)
    assert len(hand.slept) == 19


async def test_the_time_that_a_page_takes_counts():
    begun, _ = await starts(5.0, [0.15, 0.0, 0.0])
    assert begun == pytest.approx([0.0, 0.2, 0.4])


async def test_a_slow_page_is_followed_at_once_and_never_caught_up_by_a_burst():
    begun, hand = await starts(5.0, [1.0, 0.0, 0.0])
    assert begun == pytest.approx([0.0, 1.0, 1.2])
    assert hand.slept == pytest.approx([0.2])


async def test_a_wait_of_less_than_a_millisecond_is_left_out_and_still_counts():
    begun, hand = await starts(5.0, [0.1995, 0.0, 0.0])
    assert begun == pytest.approx([0.0, 0.1995, 0.4])
    assert len(hand.slept) == 1
