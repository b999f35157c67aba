"""Whatever is given to a declaration, what comes back is an error of the library that fits on a screen."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel

from ultijobs import (
    Actor,
    App,
    BatchSource,
    Limits,
    Rate,
    Relay,
    Retention,
    RetryPolicy,
    Scheduler,
    Sizes,
    Worker,
    backfill,
    job,
    task,
)
from ultijobs.errors import UltijobsError
from ultijobs.testing import JobsTestApp


class Order(BaseModel):
    n: str = "1"


async def handle(input: Order) -> None: ...


async def pages_of(rows: Any, ctx: Any) -> None: ...


def occurrences(occurrence: datetime) -> list[Any]:
    return []


WRONG: list[Any] = [
    None,
    True,
    -1,
    1.5,
    float("nan"),
    10**400,
    "",
    " ",
    "a\x00b",
    "\ud800",
    "x" * 100_000,
    b"bytes",
    {},
    {1: 2},
    [None],
    object(),
    int,
    Order,
    Order(),
    iter([None]),
]


def key(order: Order) -> str:
    return order.n


async def left() -> int:
    return 0


def declarations() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    made = job(Order, idempotency_key=key, tenant="none")(handle)
    app = App(jobs=[made])
    rows = BatchSource.table("orders", key="id")
    plain: Any

    def option(call: Callable[..., Any], of: str, **given: Any) -> Callable[[Any], Any]:
        return lambda value: call(**{**given, of: value})

    for of in ("name", "queue", "priority", "retry", "timeout", "concurrency", "unique", "tenant", "idempotency_key"):
        plain = lambda **given: job(Order, **given)(handle)  # noqa: E731 - one of many calls
        yield f"job {of}", option(plain, of, idempotency_key=key, tenant="none")
    yield "job model", lambda value: job(value, idempotency_key=key, tenant="none")(handle)
    for of in ("tenant", "count", "batch", "rate", "requires", "environments", "timeout", "retry", "name"):
        plain = lambda **given: backfill(rows, **given)(pages_of)  # noqa: E731 - one of many calls
        yield f"backfill {of}", option(plain, of, tenant="none", count=left)
    for of in ("cron", "tz", "catch_up", "max_catch_up", "name"):
        plain = lambda **given: task(**given)(occurrences)  # noqa: E731 - one of many calls
        yield f"task {of}", option(plain, of, cron="@daily", tz="UTC")
    yield "task function", task(cron="@daily", tz="UTC")
    for kind in (Limits, Sizes, RetryPolicy, Retention):
        for of in kind.__dataclass_fields__:
            yield f"{kind.__name__} {of}", option(kind, of)
    yield "Rate", lambda value: Rate(value, per="1s")
    yield "Rate per", lambda value: Rate(1, per=value)
    yield "Actor", Actor
    for of in ("jobs", "tasks", "schema", "limits", "outbox", "transactions", "classify", "report", "redact"):
        yield f"App {of}", option(App, of)
    for role in (Worker, Relay, Scheduler):
        yield role.__name__, role
    for of in ("queues", "concurrency", "lease", "grace", "poll", "name"):
        yield f"Worker {of}", option(lambda **given: Worker(app, **given), of)
    yield "table", lambda value: BatchSource.table(value, key="id")
    yield "pages", BatchSource.pages
    yield "JobsTestApp", JobsTestApp


DECLARATIONS = dict(declarations())


def refusal(declare: Callable[[Any], Any], value: Any) -> UltijobsError | None:
    try:
        declare(value)
    except UltijobsError as error:
        return error
    return None


@pytest.mark.parametrize("of", DECLARATIONS)
def test_a_value_of_the_wrong_type_is_an_error_with_a_fix_that_fits_on_a_screen(of: str):
    refusals = [error for value in WRONG if (error := refusal(DECLARATIONS[of], value)) is not None]
    assert len(refusals) > len(WRONG) // 4
    for error in refusals:
        assert error.fix
        assert len("".join(error.lines())) < 2_000


@pytest.mark.parametrize("inputs", [None, 7, "text", Order])
def test_inputs_that_are_no_list_are_refused_before_anything_is_opened(inputs: Any):
    made = job(Order, idempotency_key=key, tenant="none")(handle)
    error = refusal(lambda value: App(jobs=[made]).enqueue_many_sync(made, value), inputs)
    assert error is not None
    assert error.cause.startswith("enqueue_many_sync: inputs is ")
