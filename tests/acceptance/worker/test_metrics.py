"""What workers tell on their metrics ports: what they did, whether they go on, what a dead one left behind."""

from __future__ import annotations

from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.scraping import Samples, health, port_of, scraped
from tests.support.stage import Ask, blocks_the_loop, quick, terminal_in_a_step, three_steps

OK, DEAD, LOST = (("ultijobs_jobs_total", (outcome, "default")) for outcome in ("ok", "dead", "lost"))
LEASES_LOST = ("ultijobs_job_leases_lost_total", ("default",))
WAITED, RAN = ("ultijobs_wait_seconds_count", ("default",)), ("ultijobs_run_seconds_count", ("default",))
GAUGES = ("ultijobs_queue_depth", "ultijobs_queue_oldest_ready_seconds", "ultijobs_queue_dead_jobs")


async def all_of(ports: list[int], *names: tuple[str, tuple[str, ...]]) -> list[float]:
    fleet = [await scraped(port) for port in ports]
    return [sum(each.get(name, 0) for each in fleet) for name in names]


def gauges(samples: Samples) -> dict[str, float]:
    return {name: value for (name, labels), value in samples.items() if name in GAUGES and labels == ("default",)}


async def test_workers_tell_what_they_did_and_one_of_them_the_gauges_of_the_fleet(stage: Scene):
    workers = [await stage.worker(name, metrics_port=0) for name in ("w1", "w2")]
    ports = [await port_of(worker) for worker in workers]
    assert await all_of(ports, OK, DEAD, LEASES_LOST, WAITED, RAN) == [0, 0, 0, 0, 0]
    for port in ports:
        status, told = await health(port)
        assert (status, told["status"], told["free_slots"], told["leases"]) == (200, "ok", 4, "kept")
    done = await quick.enqueue(Ask(key="a"))
    dead = await terminal_in_a_step.enqueue(Ask(key="b", word="no"))
    await stage.ended(done.id)
    await stage.ended(dead.id, "dead")

    async def counted() -> bool:
        return await all_of(ports, OK, DEAD, WAITED, RAN) == [1, 1, 2, 2]

    await eventually(counted)

    async def published() -> bool:
        told = [gauges(await scraped(port)) for port in ports]
        return sorted(told, key=len) == [{}, dict(zip(GAUGES, (0, 0, 1), strict=True))]

    await eventually(published)
    workers[0].terminate()
    assert await workers[0].exit_code() == 0

    async def taken_over() -> bool:
        return set(gauges(await scraped(ports[1]))) == set(GAUGES)

    await eventually(taken_over)


async def test_the_lost_lease_of_a_killed_worker_is_counted_once_by_the_one_that_takes_over(stage: Scene):
    victim = await stage.worker("w1", metrics_port=0)
    job = await three_steps.enqueue(Ask(key="a", seconds=60))
    await stage.effect("b")
    survivor = await port_of(await stage.worker("w2", metrics_port=0))
    victim.kill()
    await stage.ended(job.id)

    async def counted() -> bool:
        return await all_of([survivor], LEASES_LOST, LOST, OK) == [1, 1, 1]

    await eventually(counted)

    async def own_counter() -> bool:
        return '"lost": 1' in await stage.value("select counters::text from x_workers where worker_id = 'w2'")

    await eventually(own_counter)


async def test_a_lost_lease_is_counted_once_also_when_its_worker_comes_back(stage: Scene):
    stopped = await stage.worker("w1", metrics_port=0)
    port = await port_of(stopped)
    job = await three_steps.enqueue(Ask(key="a", seconds=60))
    await stage.effect("b")
    other = await port_of(await stage.worker("w2", metrics_port=0))
    stopped.stop()
    await stage.effect("b", 2)
    stopped.go_on()
    await stopped.said("jobs.lease.lost")
    await stage.ended(job.id)

    async def own_counter() -> bool:
        return '"lost": 1' in await stage.value("select counters::text from x_workers where worker_id = 'w1'")

    await eventually(own_counter)

    async def counted() -> bool:
        return await all_of([port, other], LEASES_LOST, LOST, OK) == [1, 1, 1]

    await eventually(counted)


async def test_health_answers_while_a_handler_blocks_the_loop_and_says_when_the_worker_is_wedged(stage: Scene):
    port = await port_of(await stage.worker(metrics_port=0))
    await blocks_the_loop.enqueue(Ask(key="a", seconds=12))
    await stage.effect("start")

    async def lagging() -> bool:
        status, told = await health(port)
        return status == 200 and told["loop_lag_ms"] > 1_000

    await eventually(lagging)

    async def wedged() -> bool:
        status, told = await health(port)
        return status == 503 and "wedged" in told["reasons"][0]

    await eventually(wedged, within=15)

    async def well_again() -> bool:
        return (await health(port))[0] == 200

    await eventually(well_again)


async def test_a_draining_worker_is_not_healthy(stage: Scene):
    worker = await stage.worker(metrics_port=0)
    port = await port_of(worker)
    await quick.enqueue(Ask(key="a", seconds=2))
    await stage.effect("start")
    worker.terminate()

    async def draining() -> bool:
        status, told = await health(port)
        return (status, told["reasons"], told["draining"], told["running"]) == (503, ["draining"], True, 1)

    await eventually(draining)
    assert await worker.exit_code() == 0


async def test_a_port_that_is_taken_keeps_a_worker_from_starting(stage: Scene):
    port = await port_of(await stage.worker("w1", metrics_port=0))
    other = await stage.worker("w2", metrics_port=port, ready=False)
    assert await other.exit_code() == 4
    assert "X_METRICS_UNAVAILABLE" in other.text()
    assert not other.lines("jobs.worker.started")


async def test_each_of_several_processes_has_a_port_of_its_own(stage: Scene):
    free = await port_of(await stage.worker("w1", metrics_port=0))
    fleet = await stage.worker("fleet", processes=2, metrics_port=free + 1)
    await eventually(lambda: len(fleet.lines("jobs.worker.started")) == 2, within=40)
    assert {line["port"] for line in fleet.lines("jobs.metrics.serving")} == {free + 1, free + 2}
    assert [(await health(port))[0] for port in (free + 1, free + 2)] == [200, 200]
