"""A queue moves to another database: whole, once, and on from wherever it was broken off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.integration.moving.conftest import QUEUE, Here
from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob, Outcome, StopReason
from ultijobs.errors import DriverUnavailable, FilterInvalid, MoveRefused, NotImplementedYet, SchemaOutdated
from ultijobs.inspection import Action, ActOutcome, Inspector, PlanOptions, Target, parse_where
from ultijobs.postgres.moving import PostgresMoves

COLUMNS = (
    "id, run_id, name, queue, state, attempt, max_attempts, claims, priority, idempotency_key, tenant_id, input::text,"
    " run_at, due_at, created_at, lease_no, last_error, error_code, traceparent, enqueued_by, unique_mode, key_held"
)
STEPS = (
    "select name, kind, status, output::text, position, started_at, wake_at, event, match"
    " from x_job_steps order by run_id, name"
)
ATTEMPTS = (
    "select run_id, lease_no, attempt, outcome, error_code, started_at, ended_at from x_job_attempts order by 1, 2"
)
RUNNABLE = "select id from x_jobs where state in ('ready', 'suspended') and behind is null"


async def rows(connection: asyncpg.Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await connection.fetch(statement)]


async def drain(here: Here, there_url: str, target: Any = QUEUE, **more: Any) -> ActOutcome:
    inspector = Inspector(here.driver, actor="ops")
    options = PlanOptions(to=there_url, **more)
    return await inspector.apply(await inspector.plan(Action.DRAIN_QUEUE, target, options))


async def test_everything_that_waits_arrives_whole_and_ends_here(here: Here, there_url: str, there: Any) -> None:
    ids = [*await here.family(), *await here.full()]
    before = await rows(here.admin, f"select {COLUMNS} from x_jobs order by id")
    steps, attempts = await rows(here.admin, STEPS), await rows(here.admin, ATTEMPTS)
    outcome = await drain(here, there_url, batch=2)
    assert sorted(outcome.done) == sorted(ids)
    assert (outcome.refused, outcome.failed, outcome.matched) == ((), (), len(ids))
    assert await rows(there, f"select {COLUMNS} from x_jobs order by id") == before
    assert await rows(there, STEPS) == steps
    assert await rows(there, ATTEMPTS) == attempts
    assert await rows(here.admin, "select count(*) from x_jobs") == [(0,)]
    [(state, code, reason)] = await rows(
        here.admin, "select distinct state, error_code, cancel_reason from x_jobs_done"
    )
    assert (state, code) == ("cancelled", "X_JOB_MOVED")
    assert reason.startswith(f"moved to {there_url} [")


async def test_the_queue_is_paused_first_and_the_act_is_written_down_without_a_password(
    here: Here, there_url: str
) -> None:
    await here.put()
    url = there_url.replace("postgres@", "postgres:hunter2@")
    await drain(here, url, reason="new cluster")
    inspector = Inspector(here.driver)
    (queue,) = [each for each in await inspector.queues() if each.queue == QUEUE]
    assert (queue.state, queue.paused_by, queue.pause_reason, queue.resume_at) == ("paused", "ops", "new cluster", None)
    (act,) = await inspector.activity()
    assert (act.action, act.actor, act.done, act.refused) == ("drain-queue", "ops", 1, 0)
    assert act.equivalent is not None
    assert f"ultijobs jobs drain --queue {QUEUE} --to {there_url}" in act.equivalent
    assert "hunter2" not in f"{act} {await inspector.plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=url))}"


async def test_a_job_that_moved_tells_where_it_went(here: Here, there_url: str) -> None:
    job = await here.put()
    await drain(here, there_url)
    why = await Inspector(here.driver).why(job)
    assert why.state == "cancelled"
    assert why.holder is not None
    assert there_url in why.holder
    assert why.frees == f"ultijobs jobs show {job} --database-url {there_url}"


async def test_what_runs_stays_and_is_told(here: Here, there_url: str) -> None:
    running = await here.put()
    await here.take(running)
    waiting = await here.put()
    inspector = Inspector(here.driver)
    plan = await inspector.plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=there_url))
    assert [refusal.id for refusal in plan.refused] == [running]
    outcome = await inspector.apply(plan)
    assert outcome.done == (waiting,)
    assert [(refusal.id, refusal.code) for refusal in outcome.refused] == [(running, "X_JOB_NOT_MOVABLE")]


async def test_of_more_jobs_than_a_plan_lists_those_that_stay_are_told_and_no_others(
    here: Here, there_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultijobs.inspection.moving.LISTED", 2)
    running = await here.put()
    for _ in range(4):
        await here.put()
    inspector = Inspector(here.driver)
    assert (await inspector.plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=there_url))).refused == ()
    await here.take(running)
    plan = await inspector.plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=there_url))
    assert [refusal.id for refusal in plan.refused] == [running]


async def test_what_comes_after_the_plan_stays_and_is_told(here: Here, there_url: str) -> None:
    first = await here.put()
    inspector = Inspector(here.driver)
    plan = await inspector.plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=there_url))
    late = await here.put()
    outcome = await inspector.apply(plan)
    assert outcome.done == (first,)
    assert [refusal.id for refusal in outcome.refused] == [late]
    assert "touched after" in outcome.refused[0].cause


async def test_a_key_that_is_live_there_keeps_its_job_here_and_runnable(here: Here, there_url: str, there: Any) -> None:
    async with Inspector.connect(there_url) as target:
        held = NewJob(id=new_id(), name="charge", input="1", idempotency_key="k")
        await target.driver.enqueue([held])
    job = await here.put(idempotency_key="k")
    outcome = await drain(here, there_url)
    assert outcome.done == ()
    assert [(refusal.id, refusal.code) for refusal in outcome.refused] == [(job, "X_JOB_DUPLICATE")]
    assert await rows(here.admin, RUNNABLE) == [(job,)]
    assert await rows(there, "select id from x_jobs") == [(held.id,)]


async def test_dead_letters_move_when_the_filter_names_them(here: Here, there_url: str, there: Any) -> None:
    job = await here.put()
    await here.settle(
        await here.take(job), Outcome.DEAD, stop_reason=StopReason.TERMINAL, error_code="E_BAD", fingerprint="f1"
    )
    assert (await drain(here, there_url)).done == ()
    where = Target(where=parse_where(f"queue:{QUEUE} state:dead"))
    assert (await drain(here, there_url, where)).done == (job,)
    assert await rows(there, "select state, stop_reason, error_code, fingerprint from x_jobs") == [
        ("dead", "terminal", "E_BAD", "f1")
    ]


async def test_a_pass_of_a_backfill_stays_with_its_ledger(here: Here, there_url: str) -> None:
    job = await here.put(name="rewrite-slugs")
    await here.admin.execute(
        "insert into x_catalog (kind, name, declaration) values ('backfill', 'rewrite-slugs', '{}')"
    )
    outcome = await drain(here, there_url)
    assert [(refusal.id, refusal.code) for refusal in outcome.refused] == [(job, "X_JOB_NOT_MOVABLE")]
    assert await rows(here.admin, RUNNABLE) == [(job,)]


async def test_a_run_that_waited_goes_on_there_with_the_event_that_came_here(here: Here, there_url: str) -> None:
    _, _, waiting, *_ = await here.full()
    await drain(here, there_url)
    async with Inspector.connect(there_url) as target:
        assert [event.name for event in (await target.events()).rows] == ["paid"]
        found = await target.job(waiting)
        assert found.row.run_at <= await target.now()


# -- refusals ----------------------------------------------------------------------------------------------
async def test_a_target_that_ends_with_the_process_is_refused_and_nothing_changes(here: Here) -> None:
    job = await here.put()
    with pytest.raises(MoveRefused, match="ends with this process"):
        await Inspector(here.driver).plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to="memory:"))
    assert await rows(here.admin, RUNNABLE) == [(job,)]


@pytest.mark.parametrize("spelling", ["{url}", "{url}?application_name=x", "localhost", "sslmode"])
async def test_the_same_place_is_refused_however_it_is_spelled(here: Here, spelling: str) -> None:
    url = {
        "localhost": here.url.replace("127.0.0.1", "localhost"),
        "sslmode": f"{here.url}?sslmode=disable",
    }.get(spelling, spelling.format(url=here.url))
    with pytest.raises(MoveRefused, match="where the jobs are already"):
        await Inspector(here.driver).plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=url))


@pytest.mark.parametrize("url", ["redis://h", "nats://h"])
async def test_a_driver_that_is_not_built_is_refused(here: Here, url: str) -> None:
    with pytest.raises(NotImplementedYet):
        await Inspector(here.driver).plan(Action.DRAIN_QUEUE, QUEUE, PlanOptions(to=url))


@pytest.mark.parametrize("text", ["state:ready", "job:charge", "queue:bill*", "-queue:billing"])
async def test_a_filter_that_names_no_queue_whole_is_refused(here: Here, there_url: str, text: str) -> None:
    with pytest.raises(FilterInvalid):
        await Inspector(here.driver).plan(
            Action.DRAIN_QUEUE, Target(where=parse_where(text)), PlanOptions(to=there_url)
        )


# -- broken off --------------------------------------------------------------------------------------------
STEPS_OF_A_MOVE = ("hold", "receive", "present", "depart")


@contextmanager
def breaking(step: str, at: int, *, before: bool) -> Iterator[list[str]]:
    """Lets the `at`th call of that step fail: before it does anything, or after it has happened."""
    calls: list[str] = []
    plain = getattr(PostgresMoves, step)

    async def broken(self: PostgresMoves, *args: Any, **named: Any) -> Any:
        calls.append(step)
        if len(calls) != at:
            return await plain(self, *args, **named)
        if not before:
            await plain(self, *args, **named)
        raise DriverUnavailable("the cable was pulled")

    setattr(PostgresMoves, step, broken)
    try:
        yield calls
    finally:
        setattr(PostgresMoves, step, plain)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS_OF_A_MOVE)
async def test_a_move_that_breaks_at_any_row_is_gone_on_with_and_loses_nothing(
    here: Here, there_url: str, there: Any, step: str, before: bool
) -> None:
    ids = [*await here.family(), *await here.full()]
    for at in range(1, len(ids) + 1):
        with breaking(step, at=1, before=before):
            outcome = await drain(here, there_url, batch=1)
        assert len(outcome.failed) == 1
        # Whatever happened: nothing can run in both, and everything is in one of them.
        runnable = {row[0] for row in await rows(here.admin, RUNNABLE)}
        arrived = {row[0] for row in await rows(there, "select id from x_jobs")}
        gone = {row[0] for row in await rows(here.admin, "select id from x_jobs_done")}
        left = {row[0] for row in await rows(here.admin, "select id from x_jobs")}
        assert not runnable & arrived, at
        assert gone <= arrived
        assert left | arrived == set(ids)
        (moved,) = await moving_one(here, there_url)
        assert moved in ids
        if await rows(here.admin, "select count(*) from x_jobs") == [(0,)]:
            break
    final = await drain(here, there_url)
    assert final.refused == ()
    assert sorted(row[0] for row in await rows(there, "select id from x_jobs")) == sorted(ids)
    assert await rows(here.admin, "select count(*) from x_jobs") == [(0,)]


async def moving_one(here: Here, there_url: str) -> tuple[UUID, ...]:
    return (await drain(here, there_url, batch=1, limit=1)).done[:1]


async def test_a_target_without_tables_is_told_by_its_address_with_the_command_for_it(
    here: Here, there_url: str, there: asyncpg.Connection[Any]
) -> None:
    await here.family()
    await there.execute("drop schema public cascade; create schema public")
    with pytest.raises(SchemaOutdated) as caught:
        await drain(here, there_url)
    assert caught.value.cause.startswith(f"{there_url}: ")
    assert caught.value.fix == f"ultijobs migrate --database-url {there_url}"
