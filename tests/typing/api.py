# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportUnusedParameter=false, reportUnusedFunction=false
"""How a user's module is typed: never run, only checked.

Each wrong use carries a `type: ignore`, which both checkers refuse when the use is not an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import asyncpg
import psycopg
from pydantic import BaseModel, TypeAdapter

from ultijobs import (
    Actor,
    App,
    BatchSource,
    Context,
    Enqueued,
    Event,
    JobHandle,
    JobState,
    Limits,
    Rate,
    Request,
    Retention,
    RetryAfter,
    RetryPolicy,
    Scheduler,
    Sizes,
    Step,
    SyncStep,
    Terminal,
    UltijobsError,
    Worker,
    backfill,
    cross_tenant,
    current,
    job,
    task,
)
from ultijobs.errors import JobDuplicate
from ultijobs.testing import EnqueuedJob, Execution, FrozenClock, JobsTestApp
from ultijobs.typing import AsyncTx, Duration, SyncTx


class Order(BaseModel):
    id: int
    org: str


class Receipt(BaseModel):
    total: int


@dataclass
class Services:
    greeting: str


class CardDeclined(UltijobsError):
    """The bank said no."""

    code = "SHOP_CARD_DECLINED"
    retry = "terminal"


# -- declaring -------------------------------------------------------------------------------------------
@job(
    Order,
    idempotency_key=lambda order: f"charge:{order.id}",
    tenant=lambda order: order.org,
    retry=RetryPolicy(attempts=5, backoff="linear", delay=0.5, max_delay=timedelta(hours=1)),
    timeout="10m",
    step_timeout=30,
    unique="not-running",
)
async def charge(input: Order, step: Step, ctx: Context[Services]) -> None:
    receipt = await step.run("pay", pay, input.id, cents=100)
    assert_type(receipt, Receipt)
    assert_type(await step.run("plain", plain, 3), str)
    assert_type(await step.returning(Receipt).run("as", anything), Receipt)
    assert_type(await step.returning(TypeAdapter(list[int])).run("list", anything), list[int])
    await step.with_timeout("5s").run("quick", pay, 1, cents=2)
    await step.sleep("3d")
    await step.sleep("grace", timedelta(days=1))
    approval = await step.wait_for_event("ok", "order.approved", payload=Receipt, match=input.org, timeout="7d")
    assert_type(approval, Event[Receipt] | None)
    assert_type(await step.wait_for_event("must", "order.paid", required=True), Event[Any])
    assert_type(ctx.services.greeting, str)
    assert_type(ctx.run_id, UUID)
    ctx.progress(1, 2, "half")
    await step.run("pay", pay, "seven", cents=1)  # type: ignore[arg-type]
    await step.sleep()  # type: ignore[call-overload]


@job(Order, idempotency_key=lambda order: str(order.id), tenant="none")
def charge_in_a_thread(step: SyncStep, input: Order) -> None:
    assert_type(step.run("plain", plain, 3), str)
    step.sleep("1h")
    raise RetryAfter("30s", "the bank is closed")


@job(idempotency_key=lambda order: order.id, tenant="none")
async def by_annotation(ctx: Context[None], input: Order) -> None:
    raise Terminal("never again")


@job(idempotency_key=lambda _: "sweep", tenant="none")
async def sweep(step: Step) -> None: ...


@job(list[int], idempotency_key=lambda numbers: str(sum(numbers)), tenant="none")
async def numbers(input: list[int]) -> None: ...


@job(TypeAdapter(dict[str, int]), idempotency_key=lambda each: ",".join(sorted(each)), tenant="none")
async def mapping(input: dict[str, int]) -> None: ...


assert_type(charge, JobHandle[Order])
assert_type(charge_in_a_thread, JobHandle[Order])
assert_type(by_annotation, JobHandle[Order])
assert_type(sweep, JobHandle[None])
assert_type(numbers, JobHandle[list[int]])
assert_type(mapping, JobHandle[dict[str, int]])


@task(cron="0 3 * * *", tz="Europe/Berlin", catch_up="run-once")
def nightly(occurrence: datetime) -> list[Request[Order]]:
    return [charge.request(Order(id=1, org="acme"), delay="1s")]


@task(cron="@hourly", tz="UTC")
async def hourly(occurrence: datetime) -> Sequence[Request[Any]]:
    return [sweep.request(), charge.request(Order(id=1, org="acme"), run_at=occurrence)]


@backfill(BatchSource.table("orders", key="id"), tenant="none", batch=500, rate=2)
async def fill(rows: Sequence[dict[str, Any]], ctx: Context[Services]) -> None: ...


async def pages_of_orders(cursor: Any) -> tuple[list[Order], str | None]:
    return [], None


@backfill(BatchSource.pages(pages_of_orders), tenant="acme", count=lambda: 0)
async def renumber(rows: Sequence[Order], ctx: Context[Services]) -> None: ...


async def ask_for_passes() -> None:
    assert_type(await fill.enqueue(), Enqueued)
    assert_type(await renumber.enqueue(force=True), Enqueued)


@backfill(BatchSource.pages(pages_of_orders), tenant="acme")  # type: ignore[arg-type]
async def of_other_rows(rows: Sequence[int], ctx: Context[Services]) -> None: ...


@backfill(BatchSource.table("orders", key="id"), tenant=lambda row: "acme")  # type: ignore[arg-type]
async def with_a_tenant_by_row(rows: Sequence[Any], ctx: Context[Services]) -> None: ...


async def pay(id: int, *, cents: int) -> Receipt:
    return Receipt(total=cents)


def plain(number: int) -> str:
    return str(number)


async def anything() -> Any:
    return None


@job(Order, tenant="none")  # type: ignore[call-overload, untyped-decorator]
async def without_a_key(input: Order) -> None: ...


@job(Order, idempotency_key=lambda order: order.number, tenant="none")  # type: ignore[call-overload, untyped-decorator]
async def with_a_wrong_key(input: Order) -> None: ...


@job(Order, idempotency_key=lambda order: order.org, tenant="none")  # type: ignore[arg-type]
async def with_a_wrong_input(input: str) -> None: ...


@job(Order, idempotency_key=lambda order: order.org, tenant="none")  # type: ignore[arg-type]
async def with_a_stranger(input: Order, database: str) -> None: ...


@job(Order, idempotency_key=lambda order: order.org, tenant="none", unique="always")  # type: ignore[call-overload, untyped-decorator]
async def with_a_wrong_mode(input: Order) -> None: ...


@task(cron="@daily", tz="UTC", catch_up="sometimes")  # type: ignore[arg-type]
def with_a_wrong_catch_up(occurrence: datetime) -> list[Request[Order]]:
    return []


@task(cron="@daily", tz="UTC")  # type: ignore[arg-type]
def with_wrong_entries(occurrence: datetime) -> list[Order]:
    return []


RetryPolicy(backoff="quadratic")  # type: ignore[arg-type]
RetryPolicy(attempts="3")  # type: ignore[arg-type]


# -- composing -------------------------------------------------------------------------------------------
@asynccontextmanager
async def services() -> AsyncGenerator[Services]:
    yield Services("hello")


async def per_attempt(services: Services, ctx: Context[Services]) -> Services:
    return Services(f"{services.greeting} {ctx.tenant}")


def report(failure: object) -> None: ...


app = App(
    jobs=[charge, sweep, fill],
    tasks=[nightly, hourly],
    driver="postgresql://db",
    schema="jobs",
    lifespan=services,
    context=per_attempt,
    limits=Limits(per_tenant=3, tenant_rate=Rate(3, per="2s")),
    sizes=Sizes(input=1_000),
    retention=Retention(done="1d"),
    classify={PermissionError: "terminal"},
    report=report,
    redact=["*iban*"],
)
assert_type(app, App[Services])
assert_type(App(), App[None])
App(charge)  # type: ignore[arg-type, call-arg]
App(classify={PermissionError: "never"})  # type: ignore[dict-item]
App(transactions="always")  # type: ignore[arg-type]


# -- tasks -----------------------------------------------------------------------------------------------
async def schedule() -> None:
    await Scheduler(app, interval="1s", lease=timedelta(seconds=30)).run()
    await Worker(app, scheduler=False).run()
    assert_type(await nightly.enqueue(), list[Enqueued])
    await nightly.enqueue(tx=False)
    Scheduler(app, interval=None)  # type: ignore[arg-type]


# -- enqueueing ------------------------------------------------------------------------------------------
async def enqueue(connection: asyncpg.Connection[Any], psycopg_async: psycopg.AsyncConnection[Any]) -> None:
    order = Order(id=1, org="acme")
    row = await charge.enqueue(order)
    assert_type(row, Enqueued)
    assert_type(row.state, JobState)
    await charge.enqueue(order, tx=connection, delay="5m", priority=3, max_attempts=1, on_conflict="error")
    await charge.enqueue(order, tx=psycopg_async, run_at=datetime.now(UTC), actor=Actor("user:7", tenant="acme"))
    await charge.enqueue(order, tx=False)
    await sweep.enqueue()
    await sweep.enqueue(delay=3)
    await app.enqueue(charge, order, tx=connection)
    await app.enqueue(sweep)
    assert_type(await charge.enqueue_many([order, charge.request(order, delay="1s")]), list[Enqueued])
    assert_type(await app.enqueue_many(charge, (order for _ in range(3)), tx=connection), list[Enqueued])
    async with app.transaction(connection), app:
        await charge.enqueue(order)
    await app.publish("order.paid", {"id": 1}, key="1", ttl="1d", tx=connection)
    await app.publish("order.paid", key=1)  # type: ignore[arg-type]
    try:
        await charge.enqueue(order, on_conflict="error")
    except JobDuplicate as error:
        assert_type(error.existing_id, UUID | None)

    charge(order)  # type: ignore[operator]
    await charge.enqueue()  # type: ignore[call-arg]
    await charge.enqueue("order")  # type: ignore[arg-type]
    await charge.enqueue(order, dely="5m")  # type: ignore[call-arg]
    await charge.enqueue(order, on_conflict="ignore")  # type: ignore[arg-type]
    await charge.enqueue(order, delay=[3])  # type: ignore[arg-type]
    await charge.enqueue(order, tx=True)  # type: ignore[arg-type]
    await sweep.enqueue(order)  # type: ignore[call-overload]
    await charge.enqueue_many([3])  # type: ignore[list-item]
    await charge.enqueue_many([by_other.request("x")])  # type: ignore[list-item]
    await app.enqueue(charge, "order")  # type: ignore[misc]
    await app.enqueue(charge)  # type: ignore[arg-type]
    charge.name = "other"  # type: ignore[misc]


def enqueue_sync(connection: psycopg.Connection[Any], asyncpg_connection: asyncpg.Connection[Any]) -> None:
    order = Order(id=1, org="acme")
    assert_type(charge.enqueue_sync(order, tx=connection), Enqueued)
    sweep.enqueue_sync()
    assert_type(charge.enqueue_many_sync([order]), list[Enqueued])
    with app, app.transaction(connection):
        app.enqueue_sync(charge, order)
    charge.enqueue_sync(order, tx=asyncpg_connection)  # type: ignore[arg-type]
    charge.enqueue_sync("order")  # type: ignore[arg-type]


async def mixed_up(connection: psycopg.Connection[Any]) -> None:
    await charge.enqueue(Order(id=1, org="acme"), tx=connection)  # type: ignore[arg-type]


@job(str, idempotency_key=lambda text: text, tenant="none")
async def by_other(input: str) -> None: ...


# -- SQLAlchemy and Django, as their stubs are -----------------------------------------------------------
class AsyncSession:
    async def execute(self, statement: object, params: object = None, *, options: object = None) -> object: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...


class Session:
    def execute(self, statement: object, params: object = None) -> object: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class DjangoConnection:
    def cursor(self) -> object: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


def sessions(session: Session, async_session: AsyncSession, django: DjangoConnection) -> None:
    sync: list[SyncTx] = [session, django]
    joined: list[AsyncTx] = [async_session]
    wrong_sync: SyncTx = async_session  # type: ignore[assignment]
    wrong_async: AsyncTx = session  # type: ignore[assignment]
    assert [*sync, *joined, wrong_sync, wrong_async]


# -- running ---------------------------------------------------------------------------------------------
async def guarded(ctx: Context[None], connection: asyncpg.Connection[Any], sync: psycopg.Connection[Any]) -> None:
    async with cross_tenant("a report"):
        await ctx.guard(connection)
    ctx.guard_sync(sync)
    await ctx.guard(sync)  # type: ignore[arg-type]


async def run() -> None:
    worker = Worker(app, queues=["default"], concurrency=20, lease="30s", grace=timedelta(seconds=25), poll=1)
    await worker.run()
    await worker.run_until_idle()


def below() -> Duration:
    assert_type(current().attempt, int)
    with cross_tenant("a report"):
        assert_type(current().crossing, str | None)
    cross_tenant()  # type: ignore[call-arg]
    return "3d"


# -- testing ---------------------------------------------------------------------------------------------
async def testing() -> None:
    clock = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with JobsTestApp(app, services=Services("hello"), clock=clock) as jobs:
        assert_type(jobs.app, App[Services])
        assert_type(await jobs.run_until_idle(raise_failures=True), list[Execution])
        assert_type(await jobs.run_tasks(until="3d"), list[Execution])
        assert_type(clock.advance(timedelta(days=3)), datetime)
        await jobs.publish("order.paid", {"id": 1}, key="1")
        assert_type(jobs.enqueued(charge), list[EnqueuedJob[Order]])
        assert_type(jobs.enqueued(charge)[0].input, Order)
        jobs.enqueued("charge")  # type: ignore[arg-type]
        await jobs.run_tasks(until=[3])  # type: ignore[arg-type]
    with JobsTestApp(jobs=[charge], tasks=[nightly]) as sync_jobs:
        assert_type(sync_jobs.run_until_idle_sync()[0].error, BaseException | None)
    JobsTestApp(app, services="hello")  # type: ignore[misc]


asyncio.run(run())
