"""Sleeping: it holds no process, wakes at the stored time, and no handler can swallow it."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest

from tests.support.attempts import EPOCH, Bench
from ultijobs._queue.records import Outcome
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep


async def test_a_sleep_parks_without_cost_and_goes_on_at_its_time():
    ran: list[str] = []

    async def handler(step: Step, ctx: Any) -> None:
        await step.run("before", lambda: ran.append("before"))
        await step.sleep("nap", "5s")
        ran.append(f"attempt {ctx.attempt}")

    bench = Bench(handler, attempts=1)
    parked = await bench.run()
    assert parked is not None
    assert (parked.outcome, parked.run_at) == (Outcome.SUSPENDED, EPOCH + timedelta(seconds=5))
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    assert ran == ["before", "attempt 1"]


async def test_a_run_that_is_claimed_too_early_sleeps_on_until_the_stored_time():
    durations = ["1h"]

    async def handler(step: Step) -> None:
        await step.sleep("nap", durations[0])

    bench = Bench(handler)
    first = await bench.run()
    durations[0] = "9h"
    bench.steps.now = EPOCH
    again = await bench.run()
    assert first is not None
    assert again is not None
    assert again.run_at == first.run_at == EPOCH + timedelta(hours=1)
    assert (await bench.run_out())[-1] is Outcome.OK


async def test_unnamed_sleeps_in_a_loop_are_sleeps_of_their_own():
    async def handler(step: Step) -> None:
        for _ in range(3):
            await step.sleep("1s")
        await step.sleep(timedelta(seconds=1))
        await step.sleep(1)
        await step.sleep("2s")

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED] * 6 + [Outcome.OK]
    assert list(bench.steps.records) == [
        "sleep:1s",
        "sleep:1s#2",
        "sleep:1s#3",
        "sleep:1s#4",
        "sleep:1s#5",
        "sleep:2s",
    ]
    assert bench.steps.now == EPOCH + timedelta(seconds=7)


async def test_a_step_that_is_named_like_an_unnamed_sleep_is_another_step():
    async def handler(step: Step) -> None:
        assert await step.run("sleep:1s", lambda: "mine") == "mine"
        await step.sleep("1s")
        assert await step.run("run:sleep:1s", lambda: "too") == "too"

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    assert len(bench.steps.records) == 3


@pytest.mark.parametrize("bad", ["soon", -1, float("nan"), float("inf"), True, "-1s", "", None])
async def test_a_duration_that_makes_no_sense_is_refused_at_the_call(bad: Any):
    async def handler(step: Step) -> None:
        await step.sleep("nap", bad) if bad is not None else await step.sleep(bad)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert last.error_code == "X_DURATION_INVALID"
    assert bench.steps.records == {}


async def test_a_sleep_of_no_time_goes_on_at_once():
    async def handler(step: Step) -> None:
        await step.sleep(0)

    assert await Bench(handler).run_out() == [Outcome.OK]


async def test_a_catch_all_around_a_sleep_does_not_cancel_it():
    went_on: list[str] = []

    async def handler(step: Step) -> None:
        with contextlib.suppress(Exception):
            await step.sleep("1h")
        went_on.append("after the sleep")

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    assert went_on == ["after the sleep"]


async def test_a_handler_that_swallows_the_suspension_itself_is_parked_all_the_same():
    effects: list[str] = []

    async def handler(step: Step) -> str:
        try:
            await step.sleep("1h")
        except BaseException:  # noqa: BLE001 - what is tested
            effects.append("swallowed")
        with contextlib.suppress(BaseException):
            await step.run("too early", lambda: effects.append("ran"))
        return "done"

    bench = Bench(handler)
    parked = await bench.run()
    assert parked is not None
    assert (parked.outcome, parked.run_at) == (Outcome.SUSPENDED, EPOCH + timedelta(hours=1))
    assert effects == ["swallowed"]
    assert (await bench.run_out())[-1] is Outcome.OK
    assert effects == ["swallowed", "ran"]


async def test_an_error_after_a_swallowed_suspension_changes_nothing():
    async def handler(step: Step) -> None:
        try:
            await step.sleep("1h")
        finally:
            raise ValueError("from the clean-up")

    bench = Bench(handler)
    parked = await bench.run()
    assert parked is not None
    assert parked.outcome is Outcome.SUSPENDED


def test_a_catch_all_in_a_plain_handler_does_not_cancel_a_sleep_either():
    def handler(step: SyncStep) -> None:
        with contextlib.suppress(Exception):
            step.sleep("1h")

    async def main() -> list[Outcome]:
        return await Bench(handler).run_out()

    assert asyncio.run(main()) == [Outcome.SUSPENDED, Outcome.OK]
