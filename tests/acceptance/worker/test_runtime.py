"""Handlers that block, names and records of other releases, applications that do not load."""

from __future__ import annotations

import asyncpg

from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import Ask, blocks_its_thread, blocks_the_loop, elsewhere, quick, three_steps


async def test_a_handler_that_blocks_the_loop_loses_no_lease_and_is_named(stage: Scene):
    first = await stage.worker("w1", concurrency=8)
    others = await quick.enqueue_many([Ask(key=f"other-{n}", seconds=1) for n in range(7)])
    await stage.effect("start", 7)
    end = stage.scratch / "end"
    blocker = await blocks_the_loop.enqueue(Ask(key="k", seconds=60, word=str(end)))
    line = await first.said("jobs.worker.loop-blocked")
    assert (line["name"], line["job_id"]) == ("blocks_the_loop", str(blocker.id))
    assert "in blocks_the_loop" in line["stack"]
    await stage.worker("w2")
    later = await quick.enqueue(Ask(key="later"))
    row = await stage.ended(later.id)
    assert row["worker_id"] == "w2", "the other worker takes what is new"
    over = "select now() > started_at + interval '4 s' from x_jobs where id = $1"
    await eventually(lambda: stage.value(over, blocker.id))
    end.touch()
    for job in (blocker, *others):
        row = await stage.ended(job.id)
        assert (row["attempt"], row["worker_id"]) == (1, "w1")
    assert first.lines("jobs.lease.lost") == []
    assert len(first.lines("jobs.worker.loop-blocked")) == 1


async def test_a_sync_handler_that_blocks_its_thread_disturbs_nobody(stage: Scene):
    worker = await stage.worker("w1")
    end = stage.scratch / "end"
    blocker = await blocks_its_thread.enqueue(Ask(key="k", seconds=60, word=str(end)))
    await stage.effect("start")
    for number in range(8):
        job = await quick.enqueue(Ask(key=f"short-{number}"))
        await stage.ended(job.id)
    over = "select now() > started_at + interval '4 s' from x_jobs where id = $1 and state = 'running'"
    await eventually(lambda: stage.value(over, blocker.id))
    end.touch()
    row = await stage.ended(blocker.id)
    assert row["attempt"] == 1
    assert len(await stage.effects("end", blocker.id)) == 1
    assert worker.lines("jobs.lease.lost") == []
    assert worker.lines("jobs.worker.loop-blocked") == []


async def test_a_name_that_a_worker_does_not_know_is_left_alone_until_one_comes_that_does(stage: Scene):
    stage.app = "tests.support.stage:old_app"
    old = await stage.worker("old")
    jobs = await three_steps.enqueue_many([Ask(key=f"new-{n}") for n in range(20)])
    known = await quick.enqueue(Ask(key="known"))
    await stage.ended(known.id)
    rows = await stage.fetch("select state, attempt, lease_no, claims from x_jobs where name = 'three_steps'")
    assert len(rows) == 20
    assert {(row["state"], row["attempt"], row["lease_no"], row["claims"]) for row in rows} == {("ready", 0, 0, 0)}
    stage.app = "tests.support.stage:app"
    await stage.worker("new")
    await stage.effect("a")
    await stage.ended(jobs[0].id)
    assert await stage.value("select count(*) from x_jobs_done where name = 'three_steps' and worker_id = 'old'") == 0
    assert old.process.poll() is None


async def test_a_name_that_nobody_runs_is_warned_of_once_a_minute(stage: Scene):
    await three_steps.enqueue_many([Ask(key=f"new-{n}") for n in range(3)])
    stage.app = "tests.support.stage:old_app"
    old = await stage.worker("old")
    line = await old.said("jobs.worker.name-unserved")
    assert line["name"] == "three_steps"
    assert "3 due" in line["message"]
    known = await quick.enqueue(Ask(key="known"))
    await stage.ended(known.id)
    assert len(old.lines("jobs.worker.name-unserved")) == 1


async def test_a_step_of_a_newer_release_is_left_to_newer_workers(stage: Scene):
    job = await three_steps.enqueue(Ask(key="k"))
    await stage.fetch("update x_jobs set claims = 1 where id = $1", job.id)
    await stage.fetch(
        "insert into x_job_steps (run_id, name, kind, status, position, lease_no) "
        "values ($1, 'undo', 'run', 'compensating', 0, 0)",
        job.run_id,
    )
    worker = await stage.worker("w1")
    row = await eventually(lambda: handed_back(stage, job.id))
    assert row["attempt"] == 0
    assert 25 <= (row["run_at"] - row["now"]).total_seconds() <= 30
    other = await quick.enqueue(Ask(key="other"))
    await stage.ended(other.id)
    lines = [line for line in worker.lines() if line.get("code") == "X_JOB_ROW_STATUS_UNKNOWN"]
    assert len(lines) == 1
    assert "x_job_steps" in lines[0]["message"]
    await stage.fetch("update x_jobs set run_at = now() where id = $1", job.id)
    again = await quick.enqueue(Ask(key="again"))
    await stage.ended(again.id)
    assert await stage.value("select claims from x_jobs where id = $1", job.id) == 2, "this process leaves it alone"
    assert await stage.effects("a") == []


async def handed_back(stage: Scene, id: object) -> asyncpg.Record | None:
    returned = "select *, now() as now from x_jobs where id = $1 and claims = 2 and lease_until is null"
    rows = await stage.fetch(returned, id)
    return rows[0] if rows else None


async def test_each_queue_that_the_jobs_declare_is_served(stage: Scene):
    await stage.worker("w1")
    job = await elsewhere.enqueue(Ask(key="k"))
    await stage.ended(job.id)


async def test_a_lost_listener_comes_back_by_itself(stage: Scene):
    await stage.worker("w1", poll="3s")
    for round_ in range(3):
        killed = await eventually(
            lambda: stage.value(
                "select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name = 'ultijobs-listen') x"
            )
        )
        assert killed == 1
        job = await quick.enqueue(Ask(key=f"blind-{round_}"))
        await stage.ended(job.id)
    listening = "select count(*) from pg_stat_activity where application_name = 'ultijobs-listen'"
    await eventually(lambda: stage.value(listening))
    asked = await stage.value("select clock_timestamp()")
    job = await quick.enqueue(Ask(key="woken"))
    await stage.ended(job.id)
    began = (await stage.effects("start", job.id))[0]["at"]
    assert (began - asked).total_seconds() < 2.0, "woken, not polled"
