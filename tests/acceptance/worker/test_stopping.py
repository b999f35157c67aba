"""Signals: the first drains within the grace, the second hands back at once; nothing stays behind as running."""

from __future__ import annotations

import signal
import time
from uuid import uuid4

import asyncpg

from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import Ask, blocks_its_thread, ignores_cancel, quick, three_steps


async def test_work_longer_than_the_grace_is_handed_back_at_no_cost(stage: Scene):
    first = await stage.worker("w1", grace="4s")
    job = await three_steps.enqueue(Ask(key="k", seconds=60))
    await stage.effect("b")
    began = time.monotonic()
    first.terminate()
    await first.said("jobs.worker.draining")
    renewed = await stage.value("select lease_until from x_jobs where id = $1", job.id)
    # Its lease is renewed while it drains.
    await eventually(lambda: stage.value("select lease_until > $2 from x_jobs where id = $1", job.id, renewed))
    assert await first.exit_code() == 0
    assert 4 <= time.monotonic() - began < 60
    row = await stage.job(job.id)
    assert (row["state"], row["attempt"], row["lease_until"]) == ("ready", 0, None)
    assert await stage.value("select outcome from x_job_attempts where job_id = $1", job.id) == "returned"
    await stage.worker("w2")
    effects = await stage.effect("b", 2)
    assert effects[1]["attempt"] == 1
    assert len(await stage.effects("a")) == 1
    assert await stage.value("select state from x_workers where worker_id = 'w1'") == "stopped"


async def test_work_that_ends_within_the_grace_is_done(stage: Scene):
    worker = await stage.worker("w1")
    job = await quick.enqueue(Ask(key="k", seconds=1.5))
    later = await quick.enqueue(Ask(key="later"), delay="1s")
    await stage.effect("start")
    worker.terminate()
    assert await worker.exit_code() == 0
    assert (await stage.job(job.id))["state"] == "done"
    assert (await stage.job(later.id))["attempt"] == 0, "a draining worker claims nothing"


async def test_a_second_signal_hands_back_at_once(stage: Scene):
    worker = await stage.worker("w1", grace="60s")
    job = await quick.enqueue(Ask(key="k", seconds=60))
    await stage.effect("start")
    worker.terminate()
    await worker.said("jobs.worker.draining")
    worker.signal(signal.SIGINT)
    assert await worker.exit_code(within=30) == 130
    row = await stage.job(job.id)
    assert (row["state"], row["attempt"]) == ("ready", 0)


async def test_a_body_that_does_not_end_is_handed_back_all_the_same(stage: Scene):
    worker = await stage.worker("w1", grace="0.5s")
    job = await ignores_cancel.enqueue(Ask(key="k", seconds=60))
    await stage.effect("start")
    worker.terminate()
    assert await worker.exit_code() == 0
    row = await stage.job(job.id)
    assert (row["state"], row["attempt"]) == ("ready", 0)


async def test_a_stop_during_a_claim_strands_nothing(stage: Scene):
    first = await stage.worker("w1")
    lock = await asyncpg.connect(stage.url)
    await lock.execute("begin; lock table x_jobs in share row exclusive mode")
    await lock.executemany(
        "insert into x_jobs (id, run_id, name, input) values ($1, $1, 'quick', $2::text::json)",
        [(uuid4(), f'{{"key": "{number}", "seconds": 0.2}}') for number in range(4)],
    )
    waits = """\
select count(*) from pg_stat_activity where application_name = 'ultijobs-worker' and wait_event_type = 'Lock'"""
    await eventually(lambda: stage.value(waits))
    first.terminate()
    await first.said("jobs.worker.draining")
    await lock.execute("commit")
    await lock.close()
    assert await first.exit_code() == 0
    assert await stage.value("select count(*) from x_jobs where state = 'running'") == 0
    assert await stage.value("select coalesce(max(attempt), 0) from x_jobs where state = 'ready'") == 0
    await stage.worker("w2")
    await stage.effect("end", 4)
    await eventually(lambda: stage.value("select count(*) = 4 from x_jobs_done where state = 'done' and attempt = 1"))


async def test_a_stop_before_the_start_is_over_ends_it_without_a_claim(stage: Scene):
    nowhere = "postgresql://postgres@127.0.0.1:1/none"
    worker = await stage.worker("w1", url=nowhere, ready=False)
    await worker.said("jobs.database.away")
    worker.terminate()
    assert await worker.exit_code() == 0
    assert len(worker.lines("jobs.database.away")) == 1


async def test_a_thread_that_does_not_end_is_handed_back_and_does_not_hold_the_process(stage: Scene):
    worker = await stage.worker("w1", grace="0.5s")
    job = await blocks_its_thread.enqueue(Ask(key="k", seconds=60))
    await stage.effect("start")
    worker.terminate()
    assert await worker.exit_code() == 0
    row = await stage.job(job.id)
    assert (row["state"], row["attempt"]) == ("ready", 0)
    assert "Traceback" not in worker.text()
