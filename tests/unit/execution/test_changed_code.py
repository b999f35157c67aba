"""Code that changes under a run in flight: new steps and order are free, what was recorded must be asked for."""

import dataclasses
import logging

import pytest

from tests.support.attempts import Bench
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._steps.step import Step


class Versions:
    """A handler whose code can be exchanged between attempts."""

    def __init__(self, *bodies: object) -> None:
        self.bodies = list(bodies)

    async def __call__(self, step: Step) -> None:
        body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
        await body(step)  # type: ignore[operator]  # pyright: ignore[reportCallIssue, reportUnknownVariableType]


def bench_of(*bodies: object) -> Bench:
    versions = Versions(*bodies)

    async def handler(step: Step) -> None:
        await versions(step)

    return Bench(handler)


async def old(step: Step) -> None:
    await step.run("a", lambda: "a")
    await step.run("b", lambda: "b")
    await step.sleep("nap", "1h")


async def test_new_steps_and_another_order_are_no_change():
    async def new(step: Step) -> None:
        assert await step.run("b", lambda: "new b") == "b"
        await step.run("new", lambda: 1)
        assert await step.run("a", lambda: "new a") == "a"
        await step.sleep("nap", "1h")

    assert await bench_of(old, new).run_out() == [Outcome.SUSPENDED, Outcome.OK]


async def test_a_recorded_step_that_is_not_asked_for_stops_the_run():
    async def new(step: Step) -> None:
        await step.run("a", lambda: "a")
        await step.sleep("nap", "1h")

    bench = bench_of(old, new)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert (last.stop_reason, last.error_code) == (StopReason.CODE_CHANGED, "X_RUN_CODE_CHANGED")
    assert "'b'" in str(last.error)


async def test_a_handler_that_lost_all_its_steps_stops_too():
    async def plain() -> None:
        return

    bench = bench_of(old)
    await bench.run()
    bench.declared.fn = plain
    settlement = await bench.run()
    assert settlement is not None
    assert settlement.stop_reason is StopReason.CODE_CHANGED


async def test_a_recorded_name_that_is_asked_for_as_another_kind_stops_the_run_whatever_the_handler_does():
    async def new(step: Step) -> None:
        await step.run("a", lambda: "a")
        await step.run("b", lambda: "b")
        try:
            await step.run("nap", lambda: "not a sleep any more")
        except Exception:  # noqa: BLE001 - what is tested
            return

    bench = bench_of(old, new)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert last.stop_reason is StopReason.CODE_CHANGED


async def test_a_failed_step_may_be_replaced():
    async def broken(step: Step) -> None:
        await step.run("broken", lambda: 1 / 0)

    async def fixed(step: Step) -> None:
        await step.run("fixed", lambda: 1)

    assert await bench_of(broken, fixed).run_out() == [Outcome.RETRIED, Outcome.OK]


async def test_a_run_that_sleeps_again_or_fails_is_not_judged_yet():
    async def fails(step: Step) -> None:
        raise ConnectionError

    assert await bench_of(old, fails, old).run_out() == [Outcome.SUSPENDED, Outcome.RETRIED, Outcome.OK]


@pytest.mark.parametrize("field", ["status", "kind"])
async def test_a_record_of_a_newer_release_is_left_to_that_release(field: str, caplog: pytest.LogCaptureFixture):
    ran: list[int] = []

    async def body(step: Step) -> None:
        ran.append(1)
        await step.sleep("nap", "1h")

    bench = bench_of(body)
    await bench.run()
    bench.steps.records["nap"] = dataclasses.replace(bench.steps.records["nap"], **{field: "compensating"})
    with caplog.at_level(logging.WARNING):
        settlement = await bench.run()
    assert settlement is not None
    assert (settlement.outcome, settlement.delay.total_seconds()) == (Outcome.RETURNED, 30)
    assert settlement.error_code == "X_JOB_ROW_STATUS_UNKNOWN"
    assert bench.attempt.unreadable
    assert ran == [1]
    (line,) = caplog.records
    assert line.__dict__["fields"]["code"] == "X_JOB_ROW_STATUS_UNKNOWN"
    assert "x_job_steps" in line.getMessage()
