"""What happens to the work of a process that is killed, stopped, or cut off from the database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.faults.proxy import Proxy
from tests.support.eventually import eventually
from tests.support.scenes import Scene, WorkerProcess
from tests.support.stage import (
    Ask,
    kills_its_worker,
    long_then_quick,
    quick,
    slow_to_stop,
    stops_within_a_step,
    three_steps,
)


@pytest.fixture
def proxy(pg_url: str) -> Iterator[Proxy]:
    with Proxy(pg_url) as proxy:
        yield proxy


async def counters(stage: Scene, worker: WorkerProcess) -> dict[str, int]:
    read = await stage.value("select counters::text from x_workers where worker_id = $1", worker.name)
    return dict(json.loads(read or "{}"))


async def test_a_worker_killed_within_a_step_costs_one_attempt_and_repeats_only_that_step(stage: Scene):
    first = await stage.worker("w1")
    job = await three_steps.enqueue(Ask(key="k", seconds=30))
    await stage.effect("b")
    await stage.worker("w2")
    first.kill()
    row = await stage.ended(job.id, within=6)
    assert row["attempt"] == 2
    assert [effect["step"] for effect in await stage.effects()] == ["a", "b", "b", "c"]
    assert await stage.value("select output #>> '{}' from x_job_steps where name = 'a'") == "a of attempt 1"
    assert row["last_error"] is None


async def test_a_stopped_worker_that_acknowledges_late_changes_nothing(stage: Scene):
    first = await stage.worker("w1")
    job = await long_then_quick.enqueue(Ask(key="k", seconds=5))
    await stage.effect("start")
    first.stop()
    await stage.worker("w2")
    await stage.effect("start", 2)
    claim = (await stage.job(job.id))["lease_no"]
    first.go_on()
    await first.said("jobs.lease.lost")
    row = await stage.job(job.id)
    assert (row["state"], row["worker_id"], row["lease_no"]) == ("running", "w2", claim)
    row = await stage.ended(job.id)
    assert (row["worker_id"], row["attempt"], row["lease_no"]) == ("w2", 2, claim)
    assert len(first.lines("jobs.lease.lost")) == 1
    counted = await eventually(lambda: lost_by(stage, first))
    assert (counted["lost"], counted["done"]) == (1, 0)


async def lost_by(stage: Scene, worker: WorkerProcess) -> dict[str, int]:
    counted = await counters(stage, worker)
    return counted if counted.get("lost") else {}


async def test_a_step_that_fails_late_leaves_the_completed_record_of_the_new_owner(stage: Scene):
    first = await stage.worker("w1")
    job = await stops_within_a_step.enqueue(Ask(key="k"))
    await stage.effect("b")
    await stage.worker("w2")
    row = await stage.ended(job.id)
    assert row["attempt"] == 2
    first.go_on()
    await first.said("jobs.lease.lost")
    assert (await eventually(lambda: lost_by(stage, first)))["lost"] == 1
    step = (await stage.fetch("select * from x_job_steps where name = 'b'"))[0]
    assert (step["status"], step["output"]) == ("completed", '"two"')
    assert len(await stage.effects("b")) == 2


async def test_a_body_that_stops_slowly_after_its_lease_is_lost_disturbs_nobody(stage: Scene, proxy: Proxy):
    first = await stage.worker("w1", url=proxy.url)
    job = await slow_to_stop.enqueue(Ask(key="k", seconds=8))
    await stage.effect("start")
    await stage.worker("w2")
    proxy.refuse("ultijobs-lease")
    await stage.effect("start", 2)
    claim = (await stage.job(job.id))["lease_no"]
    await stage.effect("unwound")
    row = await stage.job(job.id)
    assert (row["state"], row["lease_no"]) == ("running", claim)
    row = await stage.ended(job.id)
    assert (row["attempt"], row["lease_no"], row["worker_id"]) == (2, claim, "w2")
    assert len(await stage.effects("start")) == 2
    assert len(first.lines("jobs.lease.lost")) == 1


async def test_a_job_that_kills_its_workers_stops_when_its_attempts_are_used_up(stage: Scene):
    job = await kills_its_worker.enqueue(Ask(key="k"))
    for number in (1, 2, 3):
        worker = await stage.worker(f"w{number}", ready=False)
        assert await worker.exit_code() == -9
    fourth = await stage.worker("w4")
    row = await stage.ended(job.id, "dead")
    assert (row["attempt"], row["stop_reason"], row["error_code"]) == (3, "lease-exhausted", "X_JOB_MAX_ATTEMPTS")
    assert all(name in row["last_error"] for name in ("X_JOB_MAX_ATTEMPTS", "w1", "w2", "w3"))
    other = await quick.enqueue(Ask(key="other"))
    await stage.ended(other.id)
    effects = await stage.effects("killing")
    assert len(effects) == 3
    assert all(effect["pid"] != fourth.pid for effect in effects)


@pytest.mark.parametrize("how", ["refuse", "stall"])
async def test_a_lease_that_cannot_be_renewed_is_lost_once_and_its_body_cancelled_in_time(
    stage: Scene, proxy: Proxy, how: str
):
    worker = await stage.worker("w1", url=proxy.url)
    job = await slow_to_stop.enqueue(Ask(key="k", seconds=30))
    await stage.effect("start")
    getattr(proxy, how)("ultijobs-lease")
    lease_until = await eventually(lambda: settled_lease(stage, job.id))
    cancelled = (await stage.effect("cancelled"))[0]
    assert cancelled["at"] <= lease_until
    proxy.heal()
    await stage.effect("start", 2)
    assert len(worker.lines("jobs.lease.lost")) == 1
    assert (await eventually(lambda: lost_by(stage, worker)))["lost"] == 1
    assert 1 <= len(worker.lines("jobs.heartbeat.failed")) <= 6


async def settled_lease(stage: Scene, id: object) -> object:
    """The lease's end, once it does not move any more."""
    before = await stage.value("select lease_until from x_jobs where id = $1", id)
    await asyncio.sleep(1.2)
    after = await stage.value("select lease_until from x_jobs where id = $1", id)
    return after if before == after else None


async def test_one_renewal_that_is_reset_is_a_warning_and_costs_nothing(stage: Scene, proxy: Proxy):
    worker = await stage.worker("w1", url=proxy.url)
    job = await quick.enqueue(Ask(key="k", seconds=4))
    await stage.effect("start")
    proxy.trip(job.id.bytes, "ultijobs-lease")
    await eventually(lambda: proxy.tripped("ultijobs-lease"))
    row = await stage.ended(job.id)
    assert row["attempt"] == 1
    assert len(worker.lines("jobs.heartbeat.failed")) == 1
    assert worker.lines("jobs.lease.lost") == []


async def test_answers_that_come_late_do_not_lengthen_a_lease(stage: Scene, proxy: Proxy):
    worker = await stage.worker("w1", url=proxy.url)
    job = await slow_to_stop.enqueue(Ask(key="k", seconds=30))
    await stage.effect("start")
    proxy.delay(1.0)
    before = await stage.value("select lease_until from x_jobs where id = $1", job.id)
    # Two landed renewals: late answers alone lose nothing.
    await eventually(lambda: renewed(stage, job.id, before, 2.0))
    assert worker.lines("jobs.lease.lost") == []
    proxy.stall("ultijobs-lease")
    lease_until = await eventually(lambda: settled_lease(stage, job.id))
    cancelled = (await stage.effect("cancelled"))[0]
    assert cancelled["at"] <= lease_until


async def renewed(stage: Scene, id: object, before: object, by: float) -> bool:
    return await stage.value(
        "select lease_until > $2::timestamptz + $3 * interval '1 s' from x_jobs where id = $1", id, before, by
    )


async def test_many_short_jobs_behind_late_renewals_lose_no_lease(stage: Scene, proxy: Proxy):
    proxy.delay(0.7, "ultijobs-lease")
    worker = await stage.worker("w1", url=proxy.url, concurrency=40)
    jobs = await quick.enqueue_many([Ask(key=str(n), seconds=0.05 + (n % 30) * 0.05) for n in range(100)])
    await eventually(lambda: stage.value("select count(*) = 100 from x_jobs_done where state = 'done'"), within=30)
    assert await stage.value("select max(attempt) from x_jobs_done") == 1
    assert worker.lines("jobs.lease.lost") == []
    assert len(jobs) == 100
