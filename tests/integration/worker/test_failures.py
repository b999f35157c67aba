"""Attempts that end badly: each costs what it should, and the row says why."""

import logging
from datetime import datetime

import pytest

from tests.faults.proxy import Proxy
from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import (
    Ask,
    bad_text,
    broken_context,
    charge,
    names_a_step_twice,
    over_its_time,
    quick,
    slow_step,
    terminal_in_a_step,
)
from ultijobs import App, task


async def test_a_timeout_cancels_waits_for_the_clean_up_and_then_retries(stage: Scene):
    async with working(stage.here):
        job = await over_its_time.enqueue(Ask(key="k"))
        row = await stage.ended(job.id, "dead")
    assert (row["attempt"], row["error_code"], row["stop_reason"]) == (2, "X_JOB_TIMEOUT", "attempts-exhausted")
    effects = await stage.effects()
    assert [effect["step"] for effect in effects] == ["start", "cancelled", "cleaned up"] * 2
    assert 0.9 <= (effects[1]["at"] - effects[0]["at"]).total_seconds() < 10


async def test_a_step_over_its_timeout_is_recorded_as_failed_and_only_it_runs_again(stage: Scene):
    async with working(stage.here):
        job = await slow_step.enqueue(Ask(key="k"))
        row = await stage.ended(job.id, "dead")
    assert row["error_code"] == "X_JOB_TIMEOUT"
    assert [effect["step"] for effect in await stage.effects()] == ["a", "b", "b"]
    steps = {step["name"]: step for step in await stage.fetch("select * from x_job_steps")}
    assert (steps["a"]["status"], steps["b"]["status"]) == ("completed", "failed")
    assert "X_JOB_TIMEOUT" in steps["b"]["error"]


@pytest.mark.parametrize(("word", "shown"), [("nul", r"a\x00b"), ("long", "truncated"), ("surrogate", r"a\ud800b")])
async def test_an_error_text_that_the_database_refuses_is_stored_with_escapes(stage: Scene, word: str, shown: str):
    async with working(stage.here):
        job = await bad_text.enqueue(Ask(key="k", word=word))
        row = await stage.ended(job.id, "dead")
    assert row["attempt"] == 2
    assert len(await stage.effects("run")) == 2
    assert shown in row["last_error"]
    assert len(row["last_error"].encode()) <= 10_000


async def test_a_failing_context_fails_the_attempt_like_its_body(stage: Scene):
    app = App(jobs=[quick], driver=stage.url, context=broken_context)
    async with app, working(app):
        job = await app.enqueue(quick, Ask(key="k"), max_attempts=2)
        row = await stage.ended(job.id, "dead")
    assert row["attempt"] == 2
    assert "no services today" in row["last_error"]
    assert await stage.value("select count(*) from x_job_attempts") == 2
    assert await stage.effects() == []


async def test_a_result_that_cannot_be_stored_stops_the_job_before_its_effect_is_repeated(stage: Scene):
    async with working(stage.here):
        job = await charge.enqueue(Ask(key="k"))
        row = await stage.ended(job.id, "dead")
    assert (row["attempt"], row["error_code"], row["stop_reason"]) == (1, "X_PAYLOAD_INVALID", "terminal")
    assert len(await stage.effects("charged")) == 1
    assert "charge" in row["last_error"]
    assert "receipt" in row["last_error"]
    assert "text" in row["last_error"]


async def test_a_stored_input_that_does_not_fit_stops_its_job_without_a_call_and_holds_nobody_up(stage: Scene):
    misfit = await stage.value(
        "insert into x_jobs (id, run_id, name, input) values "
        "(gen_random_uuid(), gen_random_uuid(), 'quick', '{\"seconds\": \"long\"}') returning id"
    )
    async with working(stage.here):
        fits = await quick.enqueue(Ask(key="fits"))
        await stage.ended(fits.id)
        row = await stage.ended(misfit, "dead")
    assert (row["attempt"], row["error_code"], row["stop_reason"]) == (1, "X_VALIDATION_FAILED", "terminal")
    assert "key" in row["last_error"]
    assert await stage.effects(job=misfit) == []


async def test_a_claim_that_meets_a_broken_connection_strands_nothing(stage: Scene, pg_url: str):
    with Proxy(pg_url) as proxy:
        app = App(jobs=[quick], driver=proxy.url)
        async with app, working(app, concurrency=8):
            await eventually(lambda: proxy.connections("ultijobs-app"))
            proxy.reset("ultijobs-app")
            jobs = await quick.enqueue_many([Ask(key=str(number)) for number in range(8)])
            for job in jobs:
                await stage.ended(job.id)
    assert await stage.value("select max(attempt) from x_jobs_done") == 1


async def test_a_step_name_used_twice_stops_the_job(stage: Scene):
    async with working(stage.here):
        job = await names_a_step_twice.enqueue(Ask(key="k"))
        row = await stage.ended(job.id, "dead")
    assert (row["attempt"], row["error_code"]) == (1, "X_STEP_DUPLICATE")
    assert [effect["step"] for effect in await stage.effects()] == ["one"]


async def test_the_error_of_a_step_wins_over_the_failure_to_record_it(
    stage: Scene, pg_url: str, caplog: pytest.LogCaptureFixture
):
    with Proxy(pg_url) as proxy:
        app = App(jobs=[terminal_in_a_step], driver=proxy.url)
        async with app, working(app):
            # The step raises its word backwards, so that the record is the first request that holds it.
            proxy.trip(b"the card is stolen")
            job = await app.enqueue(terminal_in_a_step, Ask(key="k", word="the card is stolen"[::-1]))
            row = await stage.ended(job.id, "dead")
            assert proxy.tripped() == 1
    assert (row["attempt"], row["stop_reason"]) == (1, "terminal")
    assert "the card is stolen" in row["last_error"]
    await eventually(lambda: [line for line in caplog.records if getattr(line, "event", "") == "jobs.database.away"])


async def test_an_outage_is_one_line_of_a_worker_that_also_schedules_and_relays(
    stage: Scene, pg_url: str, caplog: pytest.LogCaptureFixture
):
    @task(cron="* * * * * *", tz="UTC")
    def each_second(occurrence: datetime) -> list[object]:
        return []

    def said(event: str) -> list[logging.LogRecord]:
        return [line for line in caplog.records if getattr(line, "event", "") == event]

    caplog.set_level(logging.INFO, "ultijobs")
    with Proxy(pg_url) as proxy:
        app = App(jobs=[quick], tasks=[each_second], driver=proxy.url, outbox=pg_url)
        async with app, working(app), stage.pool.acquire() as connection:
            await eventually(lambda: said("jobs.scheduler.dispatched") and said("jobs.outbox.started"))
            proxy.refuse()
            await eventually(lambda: said("jobs.database.away"))
            async with connection.transaction():
                await app.enqueue(quick, Ask(key="k"), tx=connection)
            await eventually(lambda: stage.value("select claim_no >= 3 from x_outbox"))
            dispatched = len(said("jobs.scheduler.dispatched"))
            proxy.heal()
            await stage.effect("end")
            await eventually(lambda: len(said("jobs.scheduler.dispatched")) > dispatched + 1)
    assert [len(said(event)) for event in ("jobs.database.away", "jobs.database.back")] == [1, 1]
