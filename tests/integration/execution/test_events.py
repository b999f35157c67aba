"""Runs that wait for events, on each driver, through a real worker and the public API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from pydantic import BaseModel

from tests.support.eventually import eventually
from ultijobs import App, Event, JobHandle, JobState, RetryPolicy, Step, SyncStep, Worker, job
from ultijobs._queue.records import RequeueAsk
from ultijobs.inspection import Inspector
from ultijobs.inspection.models import JobDetail
from ultijobs.memory import MemoryDriver
from ultijobs.postgres import PostgresDriver

ENDED = {JobState.DONE, JobState.DEAD, JobState.FAILED, JobState.CANCELLED}


class Ask(BaseModel):
    key: str = "o-1"


class Paid(BaseModel):
    amount: int


def declared(fn: Callable[..., Any], **options: Any) -> JobHandle[Ask]:
    retry = RetryPolicy(attempts=4, delay="50ms", jitter=False)
    return job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", retry=retry, name="demo", **options)(fn)


@pytest.fixture(params=["memory", "postgres"])
def driver(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryDriver()
    return PostgresDriver(request.getfixturevalue("pg_url"))


@pytest.fixture
async def watching(pg_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(pg_url)
    yield connection
    await connection.close()


@contextlib.asynccontextmanager
async def working(app: App[Any], **options: Any) -> AsyncIterator[Worker]:
    worker = Worker(app, **{"poll": "200ms", "grace": "1s", **options})
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


async def came_to(app: App[Any], id: UUID, *states: JobState, waiting: str | None = None) -> JobDetail:
    inspector = Inspector(app.driver)

    async def there() -> JobDetail | None:
        detail = await inspector.job(id)
        fits = detail.row.state in (states or ENDED) and (waiting is None or detail.row.waiting_on == waiting)
        return detail if fits else None

    found = await eventually(there, that=f"{states or ENDED}")
    assert found is not None
    return found


async def parked(app: App[Any], id: UUID) -> JobDetail:
    return await came_to(app, id, JobState.SUSPENDED, waiting="event")


async def test_an_event_that_came_before_the_worker_is_there_at_once(driver: Any) -> None:
    got: list[Event[Paid] | None] = []

    async def handler(input: Ask, step: Step) -> None:
        got.append(await step.wait_for_event("paid", "order.paid", payload=Paid, match=input.key))

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app:
        await app.publish("order.paid", Paid(amount=1), key="o-1")
        enqueued = await handle.enqueue(Ask())
        await app.publish("order.paid", Paid(amount=7), key="o-1")
        async with working(app):
            detail = await came_to(app, enqueued.id)
    assert (detail.row.state, detail.row.attempt, detail.row.lease_no) == (JobState.DONE, 1, detail.steps[0].lease_no)
    assert [event and event.payload for event in got] == [Paid(amount=7)]


async def test_two_events_of_one_key_reach_two_waits_in_their_order(driver: Any) -> None:
    got: list[int] = []

    async def handler(step: Step) -> None:
        for number in (1, 2):
            event = await step.wait_for_event(f"paid {number}", "order.paid", payload=Paid, required=True)
            await step.run(f"took {number}", got.append, event.payload.amount)

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        await parked(app, enqueued.id)
        for amount in (1, 2):
            await app.publish("order.paid", Paid(amount=amount))
        detail = await came_to(app, enqueued.id)
    assert (detail.row.state, detail.row.attempt) == (JobState.DONE, 1)
    assert got == [1, 2]


async def test_a_required_wait_stops_at_its_first_timeout_and_a_retry_waits_anew(driver: Any) -> None:
    async def handler(step: Step) -> None:
        await step.wait_for_event("paid", "order.paid", timeout="300ms", required=True)

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        dead = await came_to(app, enqueued.id)
        assert (dead.row.state, dead.row.attempt, dead.row.stop_reason) == (JobState.DEAD, 1, "terminal")
        assert dead.row.error_code == "X_JOB_TIMEOUT"
        assert [attempt.outcome for attempt in dead.attempts] == ["dead"]
        await driver.requeue(RequeueAsk((enqueued.id,)))
        waiting = await parked(app, enqueued.id)
        first, again = dead.steps[0].wake_at, waiting.steps[0].wake_at
        assert first is not None
        assert again is not None
        assert again > first
        await app.publish("order.paid")
        assert (await came_to(app, enqueued.id)).row.state == JobState.DONE


async def test_what_is_published_at_the_same_moment_shares_statements_and_keeps_its_order(driver: Any) -> None:
    app = App(driver=driver)
    async with app:
        await asyncio.gather(*(app.publish("order.paid", number, key=str(number)) for number in range(2_000)))
        rows = (await app.driver.events.page(name="order.paid", limit=1_000)).rows
    assert [row.key for row in rows] == [str(number) for number in reversed(range(1_000, 2_000))]


async def test_a_roll_back_wakes_nobody_and_a_commit_does(driver: Any) -> None:
    async def handler(step: Step) -> None:
        await step.wait_for_event("paid", "order.paid", required=True)

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        await parked(app, enqueued.id)
        with contextlib.suppress(ZeroDivisionError):
            async with app.driver.transaction() as tx:
                await app.publish("order.paid", tx=tx)
                raise ZeroDivisionError
        async with app.driver.transaction() as tx:
            await app.publish("order.paid", tx=tx)
            assert await app.driver.events.deliver() == 0
            await parked(app, enqueued.id)
        assert (await came_to(app, enqueued.id)).row.state == JobState.DONE
        assert len((await app.driver.events.page()).rows) == 1


async def test_a_commit_wakes_its_run_also_without_a_listener(pg_url: str, watching: asyncpg.Connection[Any]) -> None:
    async def handler(step: Step) -> None:
        await step.wait_for_event("paid", "order.paid", required=True)

    handle = declared(handler)
    app = App(jobs=[handle], driver=f"{pg_url}?pgbouncer=1")
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        await parked(app, enqueued.id)
        async with watching.transaction():
            await app.publish("order.paid", tx=watching)
        assert (await came_to(app, enqueued.id)).row.state == JobState.DONE


async def test_a_timeout_answers_none_and_branches_beside_a_wait_go_on(driver: Any) -> None:
    got: list[Any] = []

    async def handler(step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            wait = group.create_task(step.wait_for_event("never", "order.lost", timeout="400ms"))
            paid = group.create_task(step.wait_for_event("paid", "order.paid", payload=Paid, required=True))
            group.create_task(step.run("work", asyncio.sleep, 0.05))
            group.create_task(step.sleep("nap", "200ms"))
        got.extend([wait.result(), paid.result().payload.amount])

    handle = declared(handler)
    app = App(jobs=[handle], driver=driver)
    async with app, working(app):
        enqueued = await handle.enqueue(Ask())
        await came_to(app, enqueued.id, JobState.SUSPENDED)
        await app.publish("order.paid", Paid(amount=7))
        detail = await came_to(app, enqueued.id)
    assert (detail.row.state, detail.row.attempt) == (JobState.DONE, 1)
    assert got == [None, 7]


async def test_a_handler_publishes_what_another_waits_for(driver: Any) -> None:
    app: App[Any]

    def waits(step: SyncStep) -> None:
        event = step.wait_for_event("paid", "order.paid", payload=Paid, required=True)
        step.run("took", lambda: event.payload.amount)

    async def pays(step: Step) -> None:
        await step.run("pay", app.publish, "order.paid", Paid(amount=7))

    waiting = declared(waits)
    paying = job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", name="pays")(pays)
    app = App(jobs=[waiting, paying], driver=driver)
    async with app:
        enqueued = await waiting.enqueue(Ask())
        await Worker(app).run_until_idle()
        assert (await parked(app, enqueued.id)).steps[0].status == "waiting"
        await paying.enqueue(Ask())
        await Worker(app).run_until_idle()
        detail = await came_to(app, enqueued.id)
    assert detail.row.state == JobState.DONE
    assert detail.steps[1].output == "7"


async def test_runs_that_wait_cost_no_write_and_a_publish_claims_its_own_alone(
    pg_url: str, watching: asyncpg.Connection[Any]
) -> None:
    runs = 300

    async def handler(input: Ask, step: Step) -> None:
        await step.wait_for_event("paid", "order.paid", match=input.key, timeout="1h", required=True)

    handle = declared(handler)
    app = App(jobs=[handle], driver=pg_url)

    async def claims() -> int:
        return await watching.fetchval("select coalesce(sum(claims), 0) from x_jobs")

    async with app:
        enqueued = await handle.enqueue_many([Ask(key=f"o-{number}") for number in range(runs)])
        async with working(app, concurrency=50, poll="50ms"):
            await eventually(
                lambda: watching.fetchval("select count(*) = $1 from x_jobs where state = 'suspended'", runs),
                that="all wait",
            )
            before = await watching.fetch("select id, xmin::text, run_at from x_jobs order by id")
            await app.publish("order.other")
            await app.publish("order.paid", key="nobody's")
            assert await watching.fetch("select id, xmin::text, run_at from x_jobs order by id") == before
            assert await claims() == runs
            await app.publish("order.paid", key="o-7")
            await came_to(app, enqueued[7].id)
            after = await watching.fetch("select id, xmin::text, run_at from x_jobs order by id")
            assert [row for row in before if row["id"] != enqueued[7].id] == after
            for number in range(runs):
                await app.publish("order.paid", key=f"o-{number}")
            await eventually(lambda: watching.fetchval("select count(*) = 0 from x_jobs"), that="all are done")
    assert await watching.fetchval("select count(*) from x_jobs_done where state = 'done' and claims = 2") == runs
