"""What follows a failed attempt: the class of the error, the row's own maximum, the policy."""

import asyncio
import contextvars
import dataclasses
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from tests.support.attempts import Bench, Declared
from ultijobs._execution.classify import Classifier
from ultijobs._queue.claims import Settlement
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._retry import RetryAfter, RetryPolicy, Terminal
from ultijobs._steps.step import Step
from ultijobs.errors import Overloaded, RateLimited, UltijobsError, ValidationFailed

POLICY = RetryPolicy(attempts=5, delay="1s", max_delay="1h", jitter=False)


class Refused(UltijobsError):
    code = "SHOP_REFUSED"
    retry = "terminal"


class RefusedToday(Refused):
    code = "SHOP_REFUSED_TODAY"
    retry = "retryable"


class Unclassified(UltijobsError):
    code = "SHOP_ODD"


class Mine(Exception):
    pass


class MineToo(Mine):
    pass


def raising(error: Callable[[], BaseException]) -> Callable[[], Any]:
    async def handler() -> None:
        raise error()

    return handler


async def fail(
    error: Callable[[], BaseException],
    *,
    policy: RetryPolicy = POLICY,
    attempts: int = 5,
    classify: dict[Any, Any] | None = None,
    **changes: Any,
) -> Settlement:
    bench = Bench(Declared(raising(error), retry=policy), attempts=attempts, classifier=Classifier(classify))
    settlement = await bench.run(**changes)
    assert settlement is not None
    return settlement


async def test_an_error_of_a_terminal_class_stops_at_the_first_attempt_and_says_so():
    stopped = await fail(lambda: Refused("no such card"))
    assert (stopped.outcome, stopped.stop_reason) == (Outcome.DEAD, StopReason.TERMINAL)
    assert stopped.error == "SHOP_REFUSED: no such card (not retried: the error is terminal)"
    assert stopped.error_code == "SHOP_REFUSED"


async def test_dead_letters_off_means_failed_never_ready():
    policy = RetryPolicy(attempts=2, dead_letter=False, jitter=False)
    assert (await fail(Mine, policy=policy, attempts=1)).outcome is Outcome.FAILED
    assert (await fail(lambda: Refused("x"), policy=policy)).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("error", "classify", "stops"),
    [
        (lambda: Terminal("no"), {}, True),
        (lambda: RefusedToday("the nearest class decides"), {}, False),
        (lambda: Unclassified("policy"), {}, False),
        (MineToo, {}, False),
        (MineToo, {Mine: "terminal"}, True),
        (MineToo, {Mine: "terminal", MineToo: "retryable"}, False),
        (PermissionError, {OSError: "terminal"}, True),
        (lambda: Unclassified("by code"), {"SHOP_ODD": "terminal"}, True),
        (lambda: ExceptionGroup("g", [ValueError(), Refused("one of them")]), {}, True),
        (lambda: ExceptionGroup("g", [ValueError(), KeyError()]), {}, False),
        (lambda: ValidationFailed("raised by hand"), {}, True),
    ],
)
async def test_the_nearest_class_of_the_error_decides(error: Any, classify: Any, stops: bool):
    assert ((await fail(error, classify=classify)).stop_reason is StopReason.TERMINAL) is stops


async def test_a_class_on_an_instance_counts_for_nothing():
    def odd() -> UltijobsError:
        error = Unclassified("x")
        error.retry = "terminal"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
        return error

    assert (await fail(odd)).outcome is Outcome.RETRIED


async def test_the_rows_own_maximum_decides_not_the_declaration():
    assert (await fail(Mine, attempts=1)).stop_reason is StopReason.ATTEMPTS_EXHAUSTED
    wide = await fail(Mine, policy=RetryPolicy(attempts=1, jitter=False), attempts=5)
    assert wide.outcome is Outcome.RETRIED


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8)])
async def test_the_policy_says_how_long_to_wait(attempt: int, seconds: int):
    bench = Bench(Declared(raising(Mine), retry=POLICY), attempts=5)
    bench.job = dataclasses.replace(bench.job, attempt=attempt - 1)
    settlement = await bench.run()
    assert settlement is not None
    assert settlement.delay == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (lambda: RetryAfter("2s"), 2),
        (lambda: RetryAfter(86_400), 3_600),
        (lambda: RetryAfter(0), 0),
        (lambda: RetryAfter(timedelta(minutes=1)), 60),
        (lambda: RateLimited("slow down", meta={"retry_after_seconds": 7}), 7),
        (lambda: Overloaded("later", meta={"retry_after_seconds": 2.5}), 2.5),
        (lambda: ExceptionGroup("g", [RetryAfter("2s")]), 2),
    ],
)
async def test_a_stated_wait_is_obeyed_without_jitter_up_to_the_policys_most(error: Any, seconds: float):
    retried = await fail(error, policy=RetryPolicy(attempts=5, delay="13s"))
    assert (retried.outcome, retried.delay) == (Outcome.RETRIED, timedelta(seconds=seconds))


async def test_a_stated_wait_does_not_lift_the_limit_of_attempts():
    assert (await fail(lambda: RetryAfter("2s"), attempts=1)).stop_reason is StopReason.ATTEMPTS_EXHAUSTED


UNUSABLE: list[Any] = [-1, math.nan, math.inf, -math.inf, "2", None, True, 10**400, -(10**400), 10**5_000, [], "soon"]


@pytest.mark.parametrize("stated", UNUSABLE, ids=[f"{type(value).__name__} {i}" for i, value in enumerate(UNUSABLE)])
async def test_a_stated_wait_that_cannot_be_used_means_the_policys_own(stated: Any):
    by_raising = await fail(lambda: RetryAfter(stated))
    by_meta = await fail(lambda: RateLimited("x", meta={"retry_after_seconds": stated}))
    for retried in (by_raising, by_meta):
        assert (retried.outcome, retried.delay) == (Outcome.RETRIED, timedelta(seconds=1))


class Order(BaseModel):
    id: int


async def test_an_input_that_does_not_fit_stops_at_once_and_the_body_is_not_called():
    called: list[Any] = []

    async def handler(input: Order) -> None:
        called.append(input)

    bench = Bench(Declared(handler, adapter=TypeAdapter(Order)))
    stopped = await bench.run(input='{"id": "not a number"}')
    assert stopped is not None
    assert (stopped.outcome, stopped.stop_reason) == (Outcome.DEAD, StopReason.TERMINAL)
    assert called == []


async def test_a_validation_error_of_the_body_is_an_ordinary_failure():
    async def handler() -> None:
        Order.model_validate({"id": "not a number"})

    settlement = await Bench(handler).run()
    assert settlement is not None
    assert settlement.outcome is Outcome.RETRIED


ENDINGS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit()]


@pytest.mark.parametrize("error", [*ENDINGS, BaseException("bare"), StopIteration(1), StopAsyncIteration()], ids=repr)
async def test_whatever_a_body_raises_is_a_failure_of_the_attempt_and_not_of_the_worker(error: BaseException):
    def handler() -> None:
        raise error

    async def coroutine() -> None:
        raise error

    for fn in (handler, coroutine):
        settlement = await Bench(fn).run()
        assert settlement is not None
        assert settlement.outcome is Outcome.RETRIED


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
async def test_what_would_end_a_process_ends_the_step_or_the_task_that_raises_it(error: BaseException):
    async def raising() -> None:
        raise error

    def raising_in_a_thread() -> None:
        raise error

    async def in_a_step(step: Step) -> None:
        await step.run("exit", raising)

    async def in_a_step_in_a_thread(step: Step) -> None:
        await step.run("exit", raising_in_a_thread)

    async def in_a_task() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(raising())

    async def in_a_task_that_waited() -> None:
        async def late() -> None:
            await asyncio.sleep(0)
            raise error

        await asyncio.gather(late(), asyncio.sleep(0))

    for fn in (in_a_step, in_a_step_in_a_thread, in_a_task, in_a_task_that_waited):
        bench = Bench(fn)
        settlement = await bench.run()
        assert settlement is not None
        assert settlement.outcome is Outcome.RETRIED
        assert "sys.exit(3)" in str(settlement.error) or type(error).__name__ in str(settlement.error)
        assert [record.status for record in bench.steps.records.values()] == ["failed"] * (
            fn.__name__[:9] == "in_a_step"
        )


def test_an_attempt_whose_coroutine_is_closed_from_outside_ends_there():
    reached: list[str] = []
    context = contextvars.copy_context()

    async def handler() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            reached.append("closed")

    async def begun() -> asyncio.Task[Settlement | None]:
        task = asyncio.create_task(Bench(handler).claim().run(), context=context)
        await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(begun())
    task._log_destroy_pending = False
    context.run(task.get_coro().close)
    loop.close()
    assert reached == ["closed"]
