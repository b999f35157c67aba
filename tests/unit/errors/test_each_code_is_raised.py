"""Each code of the catalogue is met by someone who uses the library as it is meant to be used, or the code is none.

A trigger answers what its caller was told: the exception, a refusal of an act, a finding of the command line.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import types
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from tests.support.fixes import commands_of, refusal
from ultijobs import (
    Actor,
    App,
    BatchSource,
    Context,
    RetryAfter,
    RetryPolicy,
    Step,
    Terminal,
    Worker,
    backfill,
    current,
    errors,
    job,
    task,
)
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk
from ultijobs.errors import CATALOGUE, UltijobsError
from ultijobs.inspection import Action, Inspector, PlanOptions, Target, parse_where
from ultijobs.memory import MemoryDriver
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.faults import translated
from ultijobs.testing import FrozenClock, JobsTestApp
from ultijobs_cli.app import app as cli_app

Told = tuple[str, str, str | None]
"""Code, cause and the line that fixes it."""
Trigger = Callable[[pytest.FixtureRequest], Awaitable[Told] | Told]

TRIGGERS: dict[str, Trigger] = {}


def trigger(kind: type[UltijobsError]) -> Callable[[Trigger], Trigger]:
    def keep(function: Trigger) -> Trigger:
        assert TRIGGERS.setdefault(kind.code, function) is function
        return function

    return keep


@pytest.mark.parametrize("code", sorted(CATALOGUE))
async def test_the_code_is_met_and_says_what_to_do(code: str, request: pytest.FixtureRequest) -> None:
    assert code in TRIGGERS, f"nobody shows how {code} is met; a code that nobody meets is none"
    answer = TRIGGERS[code](request)
    told, cause, fix = answer if isinstance(answer, tuple) else await answer
    assert told == code
    assert cause.strip()
    assert fix is not None
    assert fix.strip()
    assert "\n" not in fix
    assert " ID" not in fix, "it names no job"
    for command in commands_of(fix):
        assert refusal(command) is None, command


def test_nothing_else_is_triggered() -> None:
    assert set(TRIGGERS) == set(CATALOGUE)


# -- how one is told -------------------------------------------------------------------------------------
def of(error: BaseException | None) -> Told:
    assert isinstance(error, UltijobsError), repr(error)
    return error.code, error.cause, error.fix


def raised(call: Callable[[], object]) -> Told:
    with pytest.raises(UltijobsError) as caught:
        call()
    return of(caught.value)


async def raised_by(work: Awaitable[object]) -> Told:
    with pytest.raises(UltijobsError) as caught:
        await work
    return of(caught.value)


async def refused(driver: Any, action: Action, target: Any, **options: Any) -> Told:
    inspector = Inspector(driver)
    plan = await inspector.plan(action, target, PlanOptions(**options))
    (row,) = plan.refused
    return row.code, row.cause, row.fix or CATALOGUE[row.code].default_fix


async def cli(*words: str) -> Told:
    runner = CliRunner(env={"ULTIJOBS_DATABASE_URL": "memory:"})
    answer = await asyncio.to_thread(runner.invoke, cli_app, [*words, "--json"])
    (finding,) = json.loads(answer.stdout)["findings"]
    assert answer.exit_code != 0
    return finding["code"], finding["cause"], finding["fix"]


class Order(BaseModel):
    id: int = 1
    org: str = "acme"


def declared(fn: Callable[..., Any], **options: Any) -> Any:
    wanted = {"idempotency_key": lambda i: str(i.id), "tenant": "none", "retry": RetryPolicy(attempts=1), **options}
    return job(Order, **wanted)(fn)


async def failed(fn: Callable[..., Any], **options: Any) -> Told:
    """What the attempt of a handler failed with, as the worker has it."""
    handle = declared(fn, **options)
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue(Order())
        (*_, last) = await jobs.run_until_idle()
        assert last.error_code == last.error.code
        return of(last.error)


async def noop(input: Order) -> None: ...


def nothing(occurrence: datetime) -> list[Any]:
    return []


# -- declaring -------------------------------------------------------------------------------------------
@trigger(errors.IdempotencyRequired)
def without_a_key(request):
    return raised(lambda: job(Order, tenant="none")(noop))


@trigger(errors.JobTenantRequired)
def without_a_tenant(request):
    return raised(lambda: job(Order, idempotency_key=lambda i: "k")(noop))


@trigger(errors.DurationInvalid)
def a_duration_that_is_none(request):
    return raised(lambda: RetryPolicy(delay="soon"))


@trigger(errors.CronInvalid)
def a_cron_text_that_is_none(request):
    return raised(lambda: task(cron="61 * * * *", tz="UTC")(nothing))


@trigger(errors.TimezoneInvalid)
def a_zone_that_is_none(request):
    return raised(lambda: task(cron="@daily", tz="Mars/Base")(nothing))


@trigger(errors.ActionJobUnbridged)
def an_action_that_is_no_job(request):
    return raised(lambda: App(jobs=[types.SimpleNamespace(kind="action-job")]))


@trigger(errors.Invariant)
def a_rule_that_is_broken(request):
    return raised(lambda: RetryPolicy(attempts=0))


@trigger(errors.NotImplementedYet)
def a_driver_that_is_not_built(request):
    return raised(lambda: App(driver="redis://h").driver)


# -- enqueueing ------------------------------------------------------------------------------------------
@trigger(errors.AppAmbiguous)
async def no_application(request):
    return await raised_by(declared(noop).enqueue(Order()))


@trigger(errors.ValidationFailed)
async def an_input_that_does_not_fit(request):
    handle = declared(noop)
    async with JobsTestApp(jobs=[handle]):
        return await raised_by(handle.enqueue({"id": "seven"}))


@trigger(errors.PayloadInvalid)
async def a_payload_that_cannot_be_stored(request):
    async with JobsTestApp() as jobs:
        return await raised_by(jobs.publish("order.paid", object()))


@trigger(errors.TenantMismatch)
async def an_actor_of_another_tenant(request):
    handle = declared(noop, tenant=lambda i: i.org)
    async with JobsTestApp(jobs=[handle]):
        return await raised_by(handle.enqueue(Order(), actor=Actor("user:7", tenant="globex")))


@trigger(errors.JobDuplicate)
async def a_key_that_is_held(request):
    handle = declared(noop)
    async with JobsTestApp(jobs=[handle]):
        await handle.enqueue(Order())
        return await raised_by(handle.enqueue(Order(), on_conflict="error"))


@trigger(errors.OutboxConflict)
async def a_conflict_asked_of_an_outbox(request):
    handle = declared(noop)
    async with App(jobs=[handle], driver="memory:", outbox="memory:") as app, app.driver.transaction() as tx:
        return await raised_by(handle.enqueue(Order(), on_conflict="error", tx=tx))


@trigger(errors.OutboxMisplaced)
async def a_transaction_of_the_queue(request):
    handle = declared(noop)
    async with App(jobs=[handle], driver="memory:", outbox="memory:") as app, app.driver.transaction() as tx:
        return await raised_by(handle.enqueue(Order(), tx=tx))


@trigger(errors.OutboxNoTx)
async def no_transaction(request):
    handle = declared(noop)
    async with JobsTestApp(App(jobs=[handle], transactions="required")):
        return await raised_by(handle.enqueue(Order()))


# -- running ---------------------------------------------------------------------------------------------
@trigger(errors.JobTimeout)
async def a_deadline(request):
    async def slow(input: Order) -> None:
        await asyncio.sleep(60)

    return await failed(slow, timeout=0.05)


@trigger(errors.StepDuplicate)
async def a_step_twice(request):
    async def twice(input: Order, step: Step) -> None:
        for _ in range(2):
            await step.run("charge", int)

    return await failed(twice)


@trigger(errors.RunCodeChanged)
async def a_step_that_is_gone(request):
    releases = iter(("old", "new"))

    async def changing(input: Order, step: Step) -> None:
        if next(releases) == "old":
            await step.run("charge", int)
            await step.sleep("1d")

    handle = declared(changing)
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue(Order())
        return of((await jobs.run_tasks(until="2d"))[-1].error)


@trigger(errors.Aborted)
async def a_step_after_the_end(request):
    kept: list[Step] = []

    async def leaky(input: Order, step: Step) -> None:
        kept.append(step)

    handle = declared(leaky)
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue(Order())
        await jobs.run_until_idle()
        return await raised_by(kept[0].run("late", int))


@trigger(errors.JobRowStatusUnknown)
async def a_record_of_a_newer_release(request):
    async def sleeping(input: Order, step: Step) -> None:
        await step.sleep("nap", "1d")

    handle = declared(sleeping)
    async with JobsTestApp(jobs=[handle]) as jobs:
        row = await handle.enqueue(Order())
        await jobs.run_until_idle()
        steps = jobs.driver._store.steps[row.run_id]
        steps["nap"] = dataclasses.replace(steps["nap"], status="paused-by-a-newer-release")
        jobs.clock.advance("1d")
        (returned,) = await jobs.run_until_idle()
        assert (returned.outcome, returned.attempt) == ("returned", 1)
        logged = next(line for line in request.getfixturevalue("caplog").records if line.event == "jobs.run.unreadable")
        return returned.error_code, logged.getMessage(), errors.JobRowStatusUnknown.default_fix


async def lost(**options: Any) -> Told:
    """What a handler reads off its signal when another worker has taken its claim over."""
    seen: list[UltijobsError] = []
    clock = FrozenClock()
    driver = MemoryDriver(clock)

    async def slow(input: Order, ctx: Context[None]) -> None:
        clock.advance("1h")
        await driver.reap([])
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(ctx.signal.reason)

    handle = declared(slow, **options)
    async with App(jobs=[handle], driver=driver) as app:
        await handle.enqueue(Order())
        await Worker(app, lease=0.3).run_until_idle()
    return of(seen[0])


@trigger(errors.JobLeaseLost)
async def a_claim_that_another_has(request):
    return await lost()


@trigger(errors.JobSlotLost)
async def a_slot_that_another_has(request):
    return await lost(concurrency=1)


@trigger(errors.Draining)
async def a_worker_that_stops(request):
    seen: list[UltijobsError] = []
    began = asyncio.Event()

    async def long(input: Order) -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(current().signal.reason)

    handle = declared(long)
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue(Order())
        running = asyncio.create_task(jobs.run_until_idle())
        await began.wait()
        running.cancel()
        await asyncio.wait([running])
    return of(seen[0])


@trigger(errors.JobMaxAttempts)
async def a_job_that_takes_its_workers_down(request):
    handle = declared(noop)
    clock = FrozenClock()
    driver = MemoryDriver(clock)
    async with App(jobs=[handle], driver=driver):
        row = await handle.enqueue(Order())
        await driver.claim(ClaimAsk("w-1", {"default": 1}, (handle.name,), 1, timedelta(seconds=30)))
        clock.advance("1m")
        await driver.reap([])
        stopped = (await Inspector(driver).job(row.id)).row
    return stopped.error_code, stopped.last_error, errors.JobMaxAttempts.default_fix


@trigger(Terminal)
async def a_handler_that_gives_up(request):
    async def hopeless(input: Order) -> None:
        raise Terminal("never")

    told, cause, _ = await failed(hopeless)
    handle = declared(hopeless)
    async with JobsTestApp(jobs=[handle]) as jobs:
        row = await handle.enqueue(Order())
        await jobs.run_until_idle()
        (stored,) = jobs.enqueued(handle)
        fix = (stored.last_error or "").partition(" · fix: ")[2].partition(" (not retried")[0]
        assert str(row.id) in fix
        return told, cause, fix


@trigger(RetryAfter)
async def a_handler_that_wants_to_wait(request):
    async def busy(input: Order) -> None:
        raise RetryAfter("30s")

    return await failed(busy)


async def told_by_a_service(kind: type[UltijobsError]) -> Told:
    async def calling(input: Order) -> None:
        raise kind("the other side says so", meta={"retry_after_seconds": 3})

    return await failed(calling)


@trigger(errors.RateLimited)
async def a_service_that_wants_fewer_requests(request):
    return await told_by_a_service(errors.RateLimited)


@trigger(errors.Overloaded)
async def a_service_that_is_overloaded(request):
    return await told_by_a_service(errors.Overloaded)


@trigger(errors.TimedOut)
async def a_service_that_takes_too_long(request):
    return await told_by_a_service(errors.TimedOut)


@trigger(errors.LifespanFailed)
async def a_lifespan_that_raises(request):
    @asynccontextmanager
    async def services():
        raise OSError("no printer")
        yield

    async with JobsTestApp(App(lifespan=services)) as jobs:
        return await raised_by(jobs.run_until_idle())


@trigger(errors.JobConcurrencyUnenforceable)
async def a_cap_that_nobody_can_keep(request):
    class WithoutSlots(MemoryDriver):
        keeps_slots = False

    handle = declared(noop, concurrency=1)
    return await raised_by(Worker(App(jobs=[handle], driver=WithoutSlots())).run_until_idle())


@trigger(errors.MetricsUnavailable)
async def a_port_that_is_taken(request):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        app = App(jobs=[declared(noop)], driver=MemoryDriver())
        return await raised_by(Worker(app, metrics_port=taken.getsockname()[1], metrics_host="127.0.0.1").run())


# -- databases -------------------------------------------------------------------------------------------
async def connected(url: str) -> None:
    async with Inspector.connect(url):
        pass


@trigger(errors.DriverUnavailable)
async def a_database_that_is_away(request):
    return await raised_by(connected("postgresql://127.0.0.1:1/shop"))


@trigger(errors.RightsMissing)
def a_role_that_may_not_write(request):
    def refused() -> None:
        with translated(Dsn.parse("postgresql://shop@db/shop")):
            raise asyncpg.InsufficientPrivilegeError("permission denied for table x_jobs")

    return raised(refused)


@trigger(errors.SchemaOutdated)
async def a_database_without_tables(request):
    return await raised_by(connected(request.getfixturevalue("empty_pg_url")))


# -- operating -------------------------------------------------------------------------------------------
@trigger(errors.JobUnknown)
async def a_job_that_is_not_there(request):
    return await raised_by(Inspector(MemoryDriver()).job(new_id()))


@trigger(errors.FilterInvalid)
def a_filter_that_cannot_be_read(request):
    return raised(lambda: parse_where("state:zombie"))


@trigger(errors.QueueUnknown)
async def a_queue_that_is_not_there(request):
    return await raised_by(Inspector(MemoryDriver()).plan(Action.RESUME, "nowhere"))


@trigger(errors.WorkerUnknown)
async def a_worker_that_is_not_there(request):
    return await raised_by(Inspector(MemoryDriver()).plan(Action.DRAIN_WORKER, "w-1"))


@trigger(errors.ActUnknown)
async def an_act_that_is_not_there(request):
    return await raised_by(Inspector(MemoryDriver()).plan(Action.UNDO, str(new_id())))


@trigger(errors.NotUndoable)
async def the_undo_of_a_pause_by_its_id(request):
    inspector = Inspector(MemoryDriver())
    paused = await inspector.apply(await inspector.plan(Action.PAUSE, "mail"))
    return await raised_by(inspector.plan(Action.UNDO, str(paused.activity_id)))


async def hopeless(input: Order) -> None:
    raise Terminal("never")


@trigger(errors.JobNotCancellable)
async def a_cancel_too_late(request):
    handle = declared(hopeless)
    async with JobsTestApp(jobs=[handle]) as jobs:
        row = await handle.enqueue(Order())
        await jobs.run_until_idle()
        return await refused(jobs.driver, Action.CANCEL, [row.id])


@trigger(errors.JobNotRetryable)
async def a_retry_too_early(request):
    handle = declared(noop)
    async with JobsTestApp(jobs=[handle]) as jobs:
        return await refused(jobs.driver, Action.RETRY, [(await handle.enqueue(Order())).id])


@trigger(errors.StepUnknown)
async def a_retry_from_a_step_that_is_not_there(request):
    handle = declared(hopeless)
    async with JobsTestApp(jobs=[handle]) as jobs:
        row = await handle.enqueue(Order())
        await jobs.run_until_idle()
        return await refused(jobs.driver, Action.RETRY, [row.id], from_step="chrge")


@trigger(errors.MoveRefused)
async def a_move_into_memory(request):
    plan = Inspector(MemoryDriver()).plan(Action.DRAIN_QUEUE, Target(queue="default"), PlanOptions(to="memory:"))
    return await raised_by(plan)


@trigger(errors.JobNotMovable)
async def a_move_of_a_running_job(request):
    handle = declared(noop)
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue(Order())
        await jobs.driver.claim(ClaimAsk("w-1", {"default": 1}, (handle.name,), 1, timedelta(seconds=30)))
        to = request.getfixturevalue("pg_url")
        return await refused(jobs.driver, Action.DRAIN_QUEUE, Target(queue="default"), to=to)


@trigger(errors.JobMoved)
async def a_cancel_of_a_job_on_its_way(request):
    handle = declared(noop)
    async with JobsTestApp(jobs=[handle]) as jobs:
        row = await handle.enqueue(Order())
        await jobs.driver.moves.hold([row.id], to="postgresql://there/app", identity="0123456789ab")
        return await refused(jobs.driver, Action.CANCEL, [row.id])


# -- the command line ------------------------------------------------------------------------------------
@trigger(errors.CliBadFlag)
def a_flag_that_is_none(request):
    return cli("jobs", "ls", "--limit", "many")


@trigger(errors.DeclarationUnknown)
def a_name_that_is_none(request):
    return cli("explain", "X_NOTHING_LIKE_IT")


@trigger(errors.AppUnusable)
def an_application_that_does_not_import(request):
    return cli("jobs", "enqueue", "ship", "--app", "no_such_module_anywhere:app")


@trigger(errors.CliUnexpected)
def an_accident(request):
    def accident(*_: object) -> None:
        raise ZeroDivisionError("nobody expects it")

    request.getfixturevalue("monkeypatch").setattr("ultijobs.inspection.inspector.driver_for", accident)
    return cli("stats")


# -- backfills -------------------------------------------------------------------------------------------
async def one_page(cursor: object) -> tuple[list[int], None]:
    return [1], None


def filling(**options: Any) -> Any:
    @backfill(BatchSource.pages(one_page), tenant="none", retry=RetryPolicy(attempts=1), **options)
    async def fill(rows: Any, ctx: Any) -> None: ...

    return fill


async def passed(handle: Any) -> Told:
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue()
        return of((await jobs.run_tasks(until="1h"))[-1].error)


@trigger(errors.BackfillUnknown)
async def a_backfill_that_is_not_there(request):
    return await raised_by(Inspector(MemoryDriver()).plan_backfill("fil"))


@trigger(errors.BackfillEnvironment)
async def a_backfill_of_elsewhere(request):
    return await passed(filling(environments=["somewhere-else"]))


@trigger(errors.BackfillStalled)
async def a_backfill_whose_count_never_ends(request):
    return await passed(filling(count=lambda: 1, rate=1_000))


@trigger(errors.BackfillApplied)
async def a_backfill_that_is_done(request):
    handle = filling()
    async with JobsTestApp(jobs=[handle]) as jobs:
        await handle.enqueue()
        await jobs.run_until_idle()
        return await raised_by(handle.enqueue())


@trigger(errors.BackfillMigrationPending)
async def a_backfill_before_its_migration(request):
    handle = filling(requires="4f2a")
    async with App(jobs=[handle], driver=request.getfixturevalue("pg_url")) as app:
        row = await handle.enqueue()
        await Worker(app).run_until_idle()
        stopped = (await Inspector(app.driver).job(row.id)).row
        cause, _, fix = (stopped.last_error or "").partition(" · fix: ")
        return stopped.error_code, cause, fix


@trigger(errors.BackfillRunning)
async def a_backfill_twice(request):
    handle = filling()
    app = App(jobs=[handle], driver=MemoryDriver())
    async with JobsTestApp(app) as jobs:
        await jobs.run_until_idle()  # writes the catalogue
        await handle.enqueue()
        return await refused(jobs.driver, Action.START_BACKFILL, Target(backfill="fill"))


BACKFILLS = """
from ultijobs import App, BatchSource, backfill

async def pages(cursor):
    return [], None

@backfill(BatchSource.pages(pages), tenant="none")
async def fill(rows, ctx): ...

app = App(jobs=[fill])
"""


@trigger(errors.BackfillPending)
def a_backfill_that_is_still_to_come(request):
    folder: Path = request.getfixturevalue("tmp_path")
    (folder / "trigger_backfills.py").write_text(BACKFILLS)
    request.getfixturevalue("monkeypatch").chdir(folder)
    return cli("backfill", "--pending", "--app", "trigger_backfills:app")
