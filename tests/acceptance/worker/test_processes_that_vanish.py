"""What happens to the work of a process that is killed, stopped or shut off."""

from tests.support.scenes import Scene
from tests.support.stage import Ask, three_steps


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
