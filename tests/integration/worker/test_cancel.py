"""Cancelling a job: at once where it waits, within its worker's next word where it runs."""

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import Ask, ignores_cancel, quick, writes_after_cancel
from ultijobs import App
from ultijobs._metrics import series


async def test_a_waiting_job_is_cancelled_at_once_and_never_runs(stage: Scene):
    job = await quick.enqueue(Ask(key="k"))
    await stage.here.driver.cancel([job.id], reason="changed our mind")
    row = await stage.job(job.id)
    assert (row["state"], row["cancel_reason"], row["attempt"]) == ("cancelled", "changed our mind", 0)
    async with working(stage.here):
        other = await quick.enqueue(Ask(key="other"))
        await stage.ended(other.id)
    assert await stage.effects(job=job.id) == []


async def test_a_running_job_is_told_at_once_and_records_nothing_more(stage: Scene):
    told: list[object] = []
    app = App(jobs=[writes_after_cancel], driver=stage.url, report=told.append)
    async with app, working(app, lease="30s"):
        job = await app.enqueue(writes_after_cancel, Ask(key="k", seconds=30))
        await stage.effect("start")
        await app.driver.cancel([job.id], reason="stop it")
        # A heartbeat alone would tell it after ten seconds.
        await stage.effect("refused X_ABORTED", within=8.0)
        counters = await eventually(lambda: counted(app, "cancelled"))
    row = await stage.job(job.id)
    assert (row["state"], row["cancel_reason"]) == ("cancelled", "stop it")
    assert (counters["failed"], counters["dead"], counters["retried"], counters["lost"]) == (0, 0, 0, 0)
    assert told == []
    outcomes = {outcome: count for (_, outcome), count in app.metrics.read()[series.JOBS].items() if count}
    assert outcomes == {"cancelled": 1}
    assert await stage.value("select count(*) from x_job_steps") == 0


async def test_a_body_that_ignores_its_cancel_keeps_its_slot_and_changes_nothing(stage: Scene):
    async with working(stage.here, concurrency=1):
        job = await ignores_cancel.enqueue(Ask(key="k", seconds=3))
        await stage.effect("start")
        await stage.here.driver.cancel([job.id])
        after = await quick.enqueue(Ask(key="after"))
        await stage.ended(after.id)
    (end,) = [effect for effect in await stage.effects(job=job.id) if effect["step"] == "end"]
    first = (await stage.effects(job=after.id))[0]
    assert end["n"] < first["n"], "the slot is taken until the body ends"
    assert (await stage.job(job.id))["state"] == "cancelled"


async def counted(app: App[None], counter: str) -> dict[str, int] | None:
    """A worker's counters, once one of them is not zero."""
    for worker in await app.driver.inspect.workers():
        if worker.counters.get(counter):
            return dict(worker.counters)
    return None
