"""What a step guarantees: it runs once, and every later attempt gets what the first run returned."""

import asyncio
import contextvars
import dataclasses
import functools
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from tests.support.attempts import Bench, Declared
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._queue.steps import StepStatus
from ultijobs._steps.context import current
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs.errors import UltijobsError


class Org(BaseModel):
    id: str
    since: datetime
    tags: set[str] = set()


async def test_a_completed_step_is_not_run_again_and_gives_what_the_first_run_gave():
    calls = {"a": 0, "b": 0}
    seen: list[Org] = []

    async def provision(id: str) -> Org:
        calls["a"] += 1
        return Org(id=id, since=datetime(2026, 5, 1, tzinfo=UTC), tags={"x", "y"})

    async def flaky() -> str:
        calls["b"] += 1
        if calls["b"] == 1:
            raise RuntimeError("once")
        return "sent"

    async def handler(step: Step) -> None:
        seen.append(await step.run("provision", provision, "o-1"))
        await step.run("welcome", flaky)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.RETRIED, Outcome.OK]
    assert calls == {"a": 1, "b": 2}
    assert seen[0] == seen[1] == Org(id="o-1", since=datetime(2026, 5, 1, tzinfo=UTC), tags={"x", "y"})
    assert bench.steps.records["welcome"].tries == 2


async def test_records_are_read_once_per_attempt_and_not_at_all_in_the_first():
    async def handler(step: Step) -> None:
        for number in range(50):
            await step.run(f"s{number}", lambda: 1)
        if current().attempt == 1:
            raise RuntimeError("again")

    bench = Bench(handler)
    await bench.run()
    assert bench.steps.loads == 0
    await bench.run()
    assert bench.steps.loads == 1
    assert len(bench.steps.writes) == 50


async def test_a_plain_function_runs_in_a_thread_with_the_context_copied():
    whose = contextvars.ContextVar("whose")
    seen: dict[str, Any] = {}

    def plain(value: int) -> int:
        seen.update(thread=threading.current_thread(), whose=whose.get(), key=current().step.key)
        return value + 1

    async def handler(step: Step) -> None:
        whose.set("mine")
        assert await step.run("plain", plain, 1) == 2

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.OK]
    assert seen["thread"] is not threading.main_thread()
    assert seen["whose"] == "mine"
    assert seen["key"] == f"{bench.job.run_id}:plain"


async def test_a_plain_handler_gets_blocking_steps_with_the_same_records():
    calls: list[str] = []

    def handler(input: Any, step: SyncStep, ctx: Any) -> None:
        step.run("a", calls.append, "a")
        step.sleep("nap", "1h")
        assert step.run("b", lambda: {"n": 1}) == {"n": 1}
        calls.append(f"attempt {ctx.attempt}")

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    assert calls == ["a", "attempt 1"]
    assert [record.status for record in bench.steps.records.values()] == [StepStatus.COMPLETED] * 3


async def test_a_coroutine_function_in_a_plain_handler_runs_on_the_workers_loop():
    loops: list[asyncio.AbstractEventLoop] = []

    async def fetch() -> int:
        loops.append(asyncio.get_running_loop())
        return 7

    def handler(step: SyncStep) -> None:
        assert step.run("fetch", fetch) == 7

    assert await Bench(handler).run_out() == [Outcome.OK]
    assert loops == [asyncio.get_running_loop()]


async def test_a_function_that_answers_an_awaitable_is_awaited():
    async def send(to: str) -> str:
        return f"to {to}"

    async def handler(step: Step) -> None:
        assert await step.run("send", lambda: send("x")) == "to x"

    assert await Bench(handler).run_out() == [Outcome.OK]


async def test_a_step_name_used_twice_stops_the_job_even_thousands_of_steps_apart():
    calls: list[int] = []

    async def count(number: int) -> None:
        calls.append(number)

    async def handler(step: Step) -> None:
        await step.run("first", count, 0)
        for number in range(5_000):
            await step.run(f"s{number}", count, number)
        await step.run("first", count, -1)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert (last.error_code, last.stop_reason) == ("X_STEP_DUPLICATE", StopReason.TERMINAL)
    assert calls.count(0) == 2
    assert -1 not in calls


async def test_a_duplicate_that_the_handler_swallows_stops_the_job_all_the_same():
    async def handler(step: Step) -> None:
        await step.run("a", lambda: 1)
        try:
            await step.run("a", lambda: 2)
        except UltijobsError:
            return

    assert await Bench(handler).run_out() == [Outcome.DEAD]


async def test_a_failed_step_is_recorded_with_its_error_and_tried_again():
    async def handler(step: Step) -> None:
        await step.run("bad", lambda: 1 / 0)

    bench = Bench(handler, attempts=2)
    assert await bench.run_out() == [Outcome.RETRIED, Outcome.DEAD]
    record = bench.steps.records["bad"]
    assert (record.status, record.tries, record.error) == ("failed", 2, "ZeroDivisionError: division by zero")


async def test_a_step_inside_of_a_steps_function_is_refused():
    async def handler(step: Step) -> None:
        async def outer() -> None:
            await step.run("inner", lambda: 1)

        await step.run("outer", outer)

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert last.error_code == "X_INVARIANT"


async def test_methods_partials_and_callable_objects_are_stored_by_their_annotations():
    class Service:
        async def org(self, id: str) -> Org:
            return Org(id=id, since=datetime(2026, 1, 1, tzinfo=UTC))

        def __call__(self) -> timedelta:
            return timedelta(minutes=1)

    @dataclasses.dataclass
    class Point:
        x: int

    def point(x: int) -> Point:
        return Point(x)

    got: list[Any] = []

    async def handler(step: Step) -> None:
        service = Service()
        got.extend(
            [
                await step.run("method", service.org, "o"),
                await step.run("object", service),
                await step.run("partial", functools.partial(point, 3)),
                await step.run("model", Org, id="m", since=datetime(2026, 1, 1, tzinfo=UTC)),
                await step.returning(set[int]).run("given", lambda: [1, 2]),
            ]
        )
        if current().attempt == 1:
            raise RuntimeError("replay, please")

    assert await Bench(Declared(handler)).run_out() == [Outcome.RETRIED, Outcome.OK]
    assert got[:5] == got[5:]
    assert got[:3] == [Org(id="o", since=datetime(2026, 1, 1, tzinfo=UTC)), timedelta(minutes=1), Point(3)]
    assert got[4] == {1, 2}
