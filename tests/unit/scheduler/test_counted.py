"""What a scheduler counts of its tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.scheduler.conftest import DAY, MINUTE, World, every_minute, one_round
from ultijobs import task
from ultijobs._metrics import series
from ultijobs._scheduler.rounds import Rounds


@task(cron="* * * * *", tz="UTC", name="broken")
def broken(occurrence: Any) -> list[Any]:
    raise ValueError


def counted(rounds: Rounds) -> dict[str, Any]:
    return {each.name: values for each, values in rounds.metrics.read().items()}


async def test_slots_failures_and_the_lead_are_counted(world: World):
    tasks = every_minute(name="each"), every_minute(name="all", catch_up="run-all"), broken
    rounds, standby = await world.scheduler(*tasks), await world.scheduler(*tasks)
    await one_round(rounds)
    await one_round(standby)
    assert counted(rounds)[series.SCHEDULER_LEADER.name] == {(): 1}
    assert counted(standby)[series.SCHEDULER_LEADER.name] == {(): 0}
    world.passes(MINUTE)
    await one_round(rounds)
    slots, failures = (counted(rounds)[each.name] for each in (series.TASK_SLOTS, series.TASK_FAILURES))
    assert (slots["each", "fired"], slots["all", "fired"], slots["broken", "fired"]) == (1, 1, 0)
    assert failures == {("each",): 0, ("all",): 0, ("broken",): 1}
    world.passes(DAY - timedelta(seconds=1))
    await one_round(rounds)
    slots = counted(rounds)[series.TASK_SLOTS.name]
    assert slots["each", "skipped"] == 24 * 60 - 2
    assert slots["each", "caught-up"] + slots["each", "fired"] == 2
    assert slots["all", "missed"] == 24 * 60 - 1 - 10
    assert slots["all", "caught-up"] + slots["all", "fired"] == 11
    await rounds.leave()
    assert counted(rounds)[series.SCHEDULER_LEADER.name] == {(): 0}
