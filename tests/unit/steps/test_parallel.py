"""Branches of one handler: when one suspends, the others end what they do before the run is parked."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from tests.support.attempts import EPOCH, Bench
from ultijobs._queue.records import Outcome
from ultijobs._steps.step import Step


async def test_steps_that_are_executing_end_and_are_recorded_when_a_branch_of_gather_sleeps():
    ran: list[str] = []
    gate = asyncio.Event()

    async def slow() -> str:
        ran.append("slow begins")
        await gate.wait()
        ran.append("slow ends")
        return "slow"

    async def handler(step: Step) -> None:
        asyncio.get_running_loop().call_later(0.05, gate.set)
        await asyncio.gather(step.sleep("1h"), step.run("slow", slow))

    bench = Bench(handler)
    parked = await bench.run()
    assert parked is not None
    assert (parked.outcome, parked.run_at) == (Outcome.SUSPENDED, EPOCH + timedelta(hours=1))
    assert bench.steps.records["slow"].status == "completed"
    assert (await bench.run_out())[-1] is Outcome.OK
    assert ran == ["slow begins", "slow ends"]


async def test_a_task_group_does_not_cancel_the_steps_beside_a_sleep():
    ended = threading.Event()
    ran: list[str] = []

    def blocking() -> str:
        ended.wait(0.1)
        ran.append("blocking")
        return "x"

    async def paced() -> str:
        await asyncio.sleep(0.05)
        ran.append("paced")
        return "y"

    async def handler(step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(step.run("blocking", blocking))
            group.create_task(step.sleep("1h"))
            group.create_task(step.run("paced", paced))

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    assert sorted(ran) == ["blocking", "paced"]


async def test_a_branch_goes_on_to_its_next_steps_while_another_sleeps():
    ran: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        ran.append(number)

    async def chain(step: Step) -> None:
        for number in range(5):
            await step.run(f"w{number}", work, number)

    async def handler(step: Step) -> None:
        await asyncio.gather(step.sleep("30d"), chain(step))

    bench = Bench(handler)
    await bench.run()
    assert ran == [0, 1, 2, 3, 4]


async def test_the_run_wakes_at_the_earliest_wake_of_all_branches():
    async def branch(step: Step, first: str, second: str) -> None:
        await step.sleep(f"{first} then {second}", first)
        await step.sleep(f"after {first}", second)

    async def handler(step: Step) -> None:
        await asyncio.gather(branch(step, "3h", "1h"), branch(step, "1h", "5h"))

    bench = Bench(handler)
    wakes: list[float] = []
    for _ in range(6):
        settlement = await bench.run()
        assert settlement is not None
        if settlement.run_at is None:
            break
        wakes.append((settlement.run_at - EPOCH) / timedelta(hours=1))
    assert wakes == [1, 3, 4, 6]
    assert settlement.outcome is Outcome.OK


async def test_an_error_beside_a_sleep_fails_the_attempt_and_the_sleep_keeps_its_time():
    tries: list[int] = []

    def flaky() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("once")

    async def handler(step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(step.sleep("1h"))
            group.create_task(step.run("flaky", flaky))

    bench = Bench(handler)
    first = await bench.run()
    assert first is not None
    assert (first.outcome, first.error_code) == (Outcome.RETRIED, "ConnectionError")
    second = await bench.run()
    assert second is not None
    assert (second.outcome, second.run_at) == (Outcome.SUSPENDED, EPOCH + timedelta(hours=1))


async def test_a_step_beside_a_sleep_still_obeys_its_timeout():
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def handler(step: Step) -> None:
        await asyncio.gather(step.sleep("1h"), step.with_timeout("50ms").run("stuck", stuck))

    bench = Bench(handler)
    with bench.started() as task:
        while not task.done():
            bench.attempt.check()
            await asyncio.sleep(0.01)
    settlement = task.result()
    assert settlement is not None
    assert (settlement.outcome, settlement.error_code) == (Outcome.RETRIED, "X_JOB_TIMEOUT")
    assert bench.steps.records["stuck"].status == "failed"


@pytest.mark.parametrize("factory", [None, getattr(asyncio, "eager_task_factory", None)], ids=["lazy", "eager"])
async def test_branches_may_start_eagerly(factory: Any):
    ran: list[str] = []

    async def work() -> None:
        ran.append("work")

    async def handler(step: Step) -> None:
        await asyncio.gather(step.sleep("1h"), step.run("work", work))

    asyncio.get_running_loop().set_task_factory(factory)
    bench = Bench(handler)
    await bench.run()
    assert ran == ["work"]
