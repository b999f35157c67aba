"""`JobsTestApp`: the worker of production, in memory, under a clock that the test moves."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from ultijobs import (
    Actor,
    App,
    BatchSource,
    Context,
    Limits,
    Rate,
    RetryPolicy,
    Step,
    SyncStep,
    Terminal,
    backfill,
    current,
    job,
    task,
)
from ultijobs.errors import BackfillApplied, Invariant, JobDuplicate, OutboxNoTx, TenantMismatch, ValidationFailed
from ultijobs.inspection import Inspector
from ultijobs.testing import Execution, FrozenClock, JobsTestApp


class Order(BaseModel):
    id: int
    org: str = "acme"


SEEN: list[object] = []


@pytest.fixture(autouse=True)
def seen():
    SEEN.clear()
    return SEEN


@job(Order, idempotency_key=lambda i: str(i.id), tenant=lambda i: i.org)
async def ship(input: Order, step: Step, ctx: Context[str]) -> None:
    await step.run("pack", lambda: SEEN.append(("pack", input.id, ctx.services)))
    await step.sleep("3d")
    event = await step.wait_for_event("paid", "order.paid", match=str(input.id), timeout="7d")
    await step.run("send", lambda: SEEN.append(("send", event is not None)))


@job(Order, idempotency_key=lambda i: str(i.id), tenant="none", retry=RetryPolicy(attempts=3, delay="1m", jitter=False))
async def flaky(input: Order, step: Step) -> None:
    await step.run("before", int)
    raise ConnectionError(f"no line for {input.id}")


@job(Order, idempotency_key=lambda i: str(i.id), tenant="none")
async def hopeless(input: Order) -> None:
    raise Terminal("never")


@job(Order, idempotency_key=lambda i: str(i.id), tenant="none")
def in_a_thread(input: Order, step: SyncStep) -> None:
    step.run("note", lambda: SEEN.append(threading.current_thread() is threading.main_thread()))
    flaky.enqueue_sync(input, delay="1h")


@task(cron="0 3 * * *", tz="Europe/Berlin", catch_up="run-all")
def nightly(occurrence: datetime):
    return [hopeless.request(Order(id=occurrence.day))]


@asynccontextmanager
async def services():
    SEEN.append("opened")
    yield "the real services"
    SEEN.append("closed")


# The database does not exist: whatever reaches for it fails.
app = App(jobs=[ship, flaky, hopeless, in_a_thread], driver="postgresql://nowhere.invalid/x", lifespan=services)


async def test_three_days_of_sleep_are_one_move_of_the_clock():
    async with JobsTestApp(app, services="fakes") as jobs:
        row = await ship.enqueue(Order(id=1))
        (first,) = await jobs.run_until_idle()
        assert (first.job_id, first.name, first.tenant, first.attempt) == (row.id, "ship", "acme", 1)
        assert (first.outcome, first.steps, first.replayed) == ("suspended", ("pack", "sleep:3d"), ())
        assert first.due_at == jobs.clock.now() + timedelta(days=3)
        assert await jobs.run_until_idle() == []
        jobs.clock.advance("3d")
        (second,) = await jobs.run_until_idle()
        assert (second.outcome, second.steps, second.replayed) == ("suspended", ("sleep:3d", "paid"), ("pack",))
        await jobs.publish("order.paid", key="1")
        (third,) = await jobs.run_until_idle()
        assert (third.outcome, third.steps, third.replayed) == ("ok", ("paid", "send"), ("pack", "sleep:3d"))
        assert jobs.executions == jobs.executions_of(row.id) == [first, second, third]
        assert [each.state for each in jobs.enqueued(ship)] == ["done"]
    assert SEEN == [("pack", 1, "fakes"), ("send", True)]


async def test_a_wait_that_is_over_is_one_move_of_the_clock_too():
    async with JobsTestApp(app, services="fakes") as jobs:
        await ship.enqueue(Order(id=1))
        assert [each.outcome for each in await jobs.run_tasks(until="30d")] == ["suspended", "suspended", "ok"]
    assert SEEN[-1] == ("send", False)


async def test_back_off_is_driven_attempt_by_attempt():
    async with JobsTestApp(app, services="fakes") as jobs:
        row = await flaky.enqueue(Order(id=7))
        (failed,) = await jobs.run_until_idle()
        assert (failed.outcome, failed.attempt, failed.max_attempts) == ("retried", 1, 3)
        assert (failed.error_code, str(failed.error)) == ("ConnectionError", "no line for 7")
        assert isinstance(failed.error, ConnectionError)
        assert failed.error.__traceback__ is not None
        assert failed.due_at == jobs.clock.now() + timedelta(minutes=1)
        jobs.clock.advance("59s")
        assert await jobs.run_until_idle() == []
        jobs.clock.move_to(failed.due_at)
        assert [each.attempt for each in await jobs.run_until_idle()] == [2]
        (last,) = await jobs.run_tasks(until="1h")
        assert (last.outcome, last.stop_reason, last.attempt) == ("dead", "attempts-exhausted", 3)
        assert (last.steps, last.replayed) == ((), ("before",))
        (stored,) = jobs.enqueued(flaky)
        assert (stored.id, stored.state, stored.attempt) == (row.id, "dead", 3)
        assert stored.last_error is not None
        assert stored.last_error.startswith("ConnectionError: no line for 7")


async def test_a_failure_can_be_raised_as_it_is():
    async with JobsTestApp(app, services="fakes") as jobs:
        await hopeless.enqueue_many([Order(id=1), Order(id=2)])
        with pytest.raises(Terminal, match="never"):
            await jobs.run_until_idle(raise_failures=True)
        assert [(each.outcome, each.stop_reason) for each in jobs.executions] == [("dead", "terminal")] * 2
        assert "dead (terminal), Terminal" in str(jobs.executions[0])


def test_sync_tests_do_the_same():
    with JobsTestApp(app, services="fakes") as jobs:
        in_a_thread.enqueue_sync(Order(id=3))
        (ran,) = jobs.run_until_idle_sync()
        assert (ran.outcome, ran.steps) == ("ok", ("note",))
        assert [(each.state, each.input.id) for each in jobs.enqueued(flaky)] == [("delayed", 3)]
        assert [each.outcome for each in jobs.run_tasks_sync(until="1h")] == ["retried"]
        jobs.publish_sync("order.paid", {"id": 3})
    assert SEEN == [False]


async def test_the_lifespan_is_that_of_one_worker_process():
    async with JobsTestApp(app) as jobs:
        await ship.enqueue(Order(id=1))
        await jobs.run_until_idle()
    assert SEEN == ["opened", ("pack", 1, "the real services"), "closed"]
    assert app.lifespan is services


async def test_what_is_enqueued_is_seen_as_the_handler_would_get_it():
    async with JobsTestApp(app) as jobs:
        await app.enqueue(ship, Order(id=1, org="globex"), actor=Actor("user:7"), delay="2h", priority=3)
        await asyncio.to_thread(lambda: ship.enqueue_sync(Order(id=2)))
        assert (await ship.enqueue(Order(id=2))).deduped
        later, now = jobs.enqueued(ship)
        assert (later.input, later.tenant, later.enqueued_by) == (Order(id=1, org="globex"), "globex", "user:7")
        assert (later.state, later.priority, later.run_at) == ("delayed", 3, jobs.clock.now() + timedelta(hours=2))
        assert (now.input, now.state, now.idempotency_key) == (Order(id=2), "ready", "2")
        with pytest.raises(ValidationFailed):
            await ship.enqueue({"id": "x"})
        with pytest.raises(TenantMismatch):
            await ship.enqueue(Order(id=3), actor=Actor("user:7", tenant="globex"))
        assert len(jobs.enqueued(ship)) == 2


async def test_a_transaction_of_the_application_s_own_database_is_stored_at_once():
    async with AsyncSession() as session, JobsTestApp(app) as jobs:
        await ship.enqueue(Order(id=1), tx=session)
        async with app.transaction(session):
            await ship.enqueue(Order(id=2))
            await app.publish("order.paid", key="1")
        await ship.enqueue_many([Order(id=3), Order(id=4)], tx=session, on_conflict="error")
        assert [each.input.id for each in jobs.enqueued(ship)] == [1, 2, 3, 4]
        with pytest.raises(JobDuplicate):
            await ship.enqueue_many([Order(id=5), Order(id=4)], tx=session, on_conflict="error")
        assert len(jobs.enqueued(ship)) == 4


async def test_a_required_transaction_is_required_in_tests_too():
    strict = App(jobs=[ship], driver="postgresql://nowhere.invalid/x", transactions="required", outbox="memory:")
    async with JobsTestApp(strict) as jobs:
        with pytest.raises(OutboxNoTx):
            await ship.enqueue(Order(id=1))
        async with AsyncSession() as session:
            await ship.enqueue(Order(id=1), tx=session)
        assert len(jobs.enqueued(ship)) == 1
    assert strict.outbox == "memory:"


def test_a_sync_session_too():
    with sqlalchemy.orm.Session() as session, JobsTestApp(app) as jobs:
        ship.enqueue_sync(Order(id=1), tx=session)
        assert len(jobs.enqueued(ship)) == 1


async def test_tasks_fire_at_each_of_their_slots_while_time_passes():
    clock = FrozenClock(datetime(2026, 3, 27, 12, tzinfo=UTC))
    async with JobsTestApp(jobs=[hopeless], tasks=[nightly], clock=clock) as jobs:
        assert await jobs.run_tasks() == []
        ran = await jobs.run_tasks(until=datetime(2026, 3, 30, 12, tzinfo=UTC))
        # Over the change of clocks: 03:00 in Berlin is 02:00 in winter and 01:00 in summer.
        assert [each.run_at for each in jobs.enqueued(hopeless)] == [
            datetime(2026, 3, 28, 2, tzinfo=UTC),
            datetime(2026, 3, 29, 1, tzinfo=UTC),
            datetime(2026, 3, 30, 1, tzinfo=UTC),
        ]
        assert [each.outcome for each in ran] == ["dead"] * 3
        assert clock.now() == datetime(2026, 3, 30, 12, tzinfo=UTC)


async def test_what_a_rate_holds_back_starts_while_time_passes():
    held = App(jobs=[ship], limits=Limits(tenant_rate=Rate(3, per="2s")))
    async with JobsTestApp(held, services="fakes") as jobs:
        await ship.enqueue_many([Order(id=number) for number in range(10)])
        began = jobs.clock.now()
        assert len(await jobs.run_until_idle()) == 3
        assert len(await jobs.run_tasks(until="10s")) == 7
        assert jobs.clock.now() == began + timedelta(seconds=10)


async def test_time_that_only_the_clock_moved_is_an_outage():
    async with JobsTestApp(jobs=[hopeless], tasks=[nightly]) as jobs:
        jobs.clock.advance("3d")
        await jobs.run_tasks()
        assert [each.input.id for each in jobs.enqueued(hopeless)] == [1, 2, 3]


async def test_caps_and_rates_are_kept_while_time_passes():
    @job(Order, idempotency_key=lambda i: str(i.id), tenant="none", concurrency=1)
    async def alone(input: Order) -> None: ...

    @job(Order, idempotency_key=lambda i: str(i.id), tenant=lambda i: i.org)
    async def serve(input: Order) -> None: ...

    app = App(jobs=[alone, serve], limits=Limits(tenant_rate=Rate(2, per="1h")))
    with JobsTestApp(app) as jobs:
        await alone.enqueue_many([Order(id=1), Order(id=2)])
        await serve.enqueue_many([Order(id=1), Order(id=2), Order(id=3)])
        await alone.enqueue(Order(id=3), delay="1h")
        ran = await jobs.run_tasks()
        assert Counter(one.name for one in ran) == {"alone": 2, "serve": 2}
        assert await jobs.run_until_idle() == []
        ran = await jobs.run_tasks(until="59m")
        assert ran == []
        ran = await jobs.run_tasks(until="2h")
        assert Counter(one.name for one in ran) == {"alone": 1, "serve": 1}


async def test_a_task_that_raises_is_seen():
    @task(cron="@daily", tz="UTC")
    def broken(occurrence: datetime):
        raise LookupError(f"nothing for {occurrence.day}")

    async with JobsTestApp(tasks=[broken]) as jobs:
        with pytest.raises(Invariant, match="task broken was not dispatched: LookupError: nothing for 2"):
            await jobs.run_tasks(until="1d")


async def test_a_pass_of_a_backfill_is_driven_too():
    @backfill(BatchSource.pages(two_pages), tenant="none", rate=1_000)
    async def fill(rows, ctx) -> None:
        SEEN.append((rows, ctx.crossing))

    async with JobsTestApp(jobs=[fill]) as jobs:
        await fill.enqueue()
        assert [(each.name, each.outcome) for each in await jobs.run_tasks(until="1m")] == [("fill", "ok")]
    assert [rows for rows, _ in SEEN] == [[1, 2], [3]]
    assert all("fill" in reason for _, reason in SEEN)


async def two_pages(cursor):
    return ([1, 2], "next") if cursor is None else ([3], None)


async def test_a_job_that_is_cancelled_while_it_runs_is_seen_as_that():
    @job(Order, idempotency_key=lambda i: str(i.id), tenant="none")
    async def suicidal(input: Order) -> None:
        await jobs.driver.cancel([current().job_id])

    async with JobsTestApp(jobs=[suicidal]) as jobs:
        await suicidal.enqueue(Order(id=1))
        assert [each.outcome for each in await jobs.run_until_idle()] == ["cancelled"]


async def test_operators_tools_look_at_it():
    async with JobsTestApp(app, services="fakes") as jobs:
        row = await hopeless.enqueue(Order(id=1))
        await jobs.run_until_idle()
        assert (await Inspector(jobs.driver).why(row.id)).state == "dead"


async def test_it_wins_over_other_live_applications_of_the_handle():
    others = [App(jobs=[ship], driver="postgresql://nowhere.invalid/x") for _ in range(2)]
    with JobsTestApp(app) as jobs:
        # A thread of its own has no context, hence no ambient application.
        thread = threading.Thread(target=ship.enqueue_sync, args=(Order(id=1),))
        thread.start()
        thread.join()
        assert len(jobs.enqueued(ship)) == 1
    del others
    gc.collect()


async def test_each_block_begins_empty_and_leaves_the_application_as_it_was():
    for _ in range(2):
        async with JobsTestApp(app) as jobs:
            assert not (await ship.enqueue(Order(id=1))).deduped
            async with app:
                await ship.enqueue(Order(id=2))
            assert len(jobs.enqueued(ship)) == 2
    assert app.driver.url.startswith("postgresql://nowhere.invalid")


async def test_a_wrong_use_says_what_is_right():
    jobs = JobsTestApp(app)
    with pytest.raises(Invariant, match="outside of the block"):
        await jobs.run_until_idle()
    with jobs, pytest.raises(Invariant, match="entered already"), jobs:
        pass
    with jobs:
        with pytest.raises(Invariant, match="running event loop"):
            jobs.run_until_idle_sync()
        with pytest.raises(Invariant, match="is not registered"):
            jobs.enqueued(job(Order, idempotency_key=lambda i: str(i.id), tenant="none", name="stranger")(lambda: None))
        with pytest.raises(Invariant, match="still to come"):
            await jobs.run_tasks(until=datetime(2025, 1, 1, tzinfo=UTC))
    with pytest.raises(Invariant, match="besides"):
        JobsTestApp(app, jobs=[ship])


def test_an_execution_compares_by_its_facts():
    facts = {"run_id": None, "name": "x", "tenant": None, "attempt": 1, "max_attempts": 1, "outcome": "ok"}
    assert Execution(job_id=None, error=None, **facts) == Execution(job_id=None, error=ValueError(), **facts)


@pytest.mark.parametrize("by", ["run_until_idle", "run_tasks"])
async def test_a_backfill_runs_and_its_failure_is_told(by):
    async def pages(cursor):
        return [1, 2], None

    @backfill(BatchSource.pages(pages), tenant="acme", retry=RetryPolicy(attempts=1))
    async def fill(rows, ctx):
        SEEN.append((rows, ctx.tenant))
        if len(SEEN) == 2:
            raise ConnectionError("no line")

    with JobsTestApp(jobs=[fill]) as jobs:
        await fill.enqueue()
        (first,) = await getattr(jobs, by)()
        await fill.enqueue(force=True)
        (second,) = await getattr(jobs, by)()
        with pytest.raises(BackfillApplied):
            await fill.enqueue()
    assert SEEN == [([1, 2], "acme")] * 2
    assert (first.name, first.outcome, second.outcome, second.error_code) == ("fill", "ok", "dead", "ConnectionError")
