"""`v` counts by tenant, queue or job in place of causes; what is under the cursor can be opened and acted on."""

from __future__ import annotations

import pytest

from tests.tui.driving import driving
from tests.tui.pilot.test_live import dead_jobs, on_queue
from ultijobs.inspection import Field
from ultijobs_tui.desk import Settings
from ultijobs_tui.frame import TallyAsk


@pytest.fixture(params=["memory", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory:" if request.param == "memory" else request.getfixturevalue("pg_url")


async def test_dead_letters_go_from_cause_to_tenant_queue_job_and_back() -> None:
    async with driving(settings=Settings(view="dead")) as driver:
        await driver.sees("RETRIED→DIED")
        for by in (Field.TENANT, Field.QUEUE, Field.JOB):
            await driver.press("v")
            await driver.sees(f"dead letters by {by}", "FIRST STOP", "3,100")
            assert driver.source.fetched[-1].tally == TallyAsk("state:dead,failed", by)
        await driver.press("v")
        await driver.sees("RETRIED→DIED")


async def test_jobs_without_a_tenant_are_listed_and_not_acted_on_by_a_filter_that_means_all() -> None:
    async with driving(settings=Settings(view="dead")) as driver:
        await driver.press("v")
        await driver.sees("(none)")
        await driver.press("G", "r")
        await driver.sees("no filter finds these jobs")
        assert driver.source.planned == []


async def test_the_dead_letters_of_one_tenant_are_retried_alone(url: str) -> None:
    async with on_queue(url, Settings(view="dead")) as (driver, queue):
        ids = await dead_jobs(queue, 3)
        await driver.sees("jobs of 7f3a")
        await driver.press("v")
        await driver.sees("dead letters by tenant", "t0", "t1", "t2")
        await driver.press("j")
        await driver.sees("jobs of tenant t1", "newest 1 of 1")
        await driver.press("r")
        dialog = await driver.dialog()
        assert (dialog.plan.target.text, dialog.plan.matched.value) == ("state:dead,failed tenant:t1", 1)
        await driver.press("tab", "enter")
        await driver.sees("retried 1")
        assert [(await queue.inspect.job(job)).state for job in ids] == ["dead", "ready", "dead"]


async def test_what_waits_is_counted_by_tenant_and_opened() -> None:
    async with driving(settings=Settings(view="queues")) as driver:
        await driver.sees("RUN/CAP")
        await driver.press("v")
        await driver.sees("by tenant", "t17", "OLDEST DUE")
        await driver.press("p")
        await driver.sees("this list is by tenant: v shows queues")
        await driver.press("enter")
        await driver.sees("filter state:ready,delayed,running,suspended tenant:t17")
        await driver.press("left_square_bracket", "v")
        await driver.sees("RUN/CAP")
