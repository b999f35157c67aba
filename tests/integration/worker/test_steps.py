"""Durable steps through a worker: what ran is not run again, and sleep costs nothing."""

from tests.integration.worker.conftest import working
from tests.support.scenes import Scene
from tests.support.stage import Ask, fails_once, naps_in_a_loop, sleeper


async def test_a_completed_step_is_replayed_in_the_next_attempt(stage: Scene):
    async with working(stage.here):
        job = await fails_once.enqueue(Ask(key="k"))
        row = await stage.ended(job.id)
    assert row["attempt"] == 2
    assert [effect["step"] for effect in await stage.effects()] == ["a", "b", "b"]


async def test_a_sleep_survives_a_change_of_workers_and_costs_no_attempt(stage: Scene, monkeypatch):
    async with working(stage.here):
        job = await sleeper.enqueue(Ask(key="k", seconds=2))
        await stage.ended(job.id, "suspended")
    monkeypatch.setenv("NAP", "3600")
    async with working(stage.here, name="w2"):
        row = await stage.ended(job.id)
    assert row["attempt"] == 1
    before, after = await stage.effects()
    assert (before["step"], after["step"]) == ("before", "after")
    assert (after["at"] - before["at"]).total_seconds() >= 2.0


async def test_the_short_form_in_a_loop_sleeps_each_time_beside_a_step_of_a_derived_name(stage: Scene):
    async with working(stage.here):
        job = await naps_in_a_loop.enqueue(Ask(key="k"))
        await stage.ended(job.id)
    first, last = await stage.effects()
    assert (first["step"], last["step"]) == ("named like a derived one", "end")
    assert (last["at"] - first["at"]).total_seconds() >= 0.9
    assert await stage.value("select count(*) from x_job_steps where kind = 'sleep'") == 3
