"""`t` narrows every screen, and every act on jobs, to one tenant; the first row says so."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.tui.driving import driving
from tests.tui.pilot.test_live import dead_jobs, on_queue
from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob
from ultijobs_tui.desk import Settings


@pytest.fixture(params=["memory", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory:" if request.param == "memory" else request.getfixturevalue("pg_url")


async def test_the_tenant_under_the_cursor_narrows_every_screen_until_pressed_again() -> None:
    async with driving(settings=Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("t")
        await driver.sees("tenant t1")
        await driver.until(lambda: driver.source.fetched[-1].tenant == "t1")
        for key in ("1", "2", "5"):
            await driver.press(key)
            await driver.sees("tenant t1")
            await driver.until(lambda: driver.source.fetched[-1].tenant == "t1")
        await driver.press("t")
        await driver.sees("all tenants")
        await driver.until(lambda: driver.source.fetched[-1].tenant is None)


async def test_where_no_tenant_is_under_the_cursor_it_is_asked_for() -> None:
    async with driving() as driver:
        await driver.press("t")
        await driver.sees("TENANT for every screen")
        await driver.press(*"t42", "enter")
        await driver.sees("tenant t42")


async def test_a_tenant_that_nothing_is_known_of_is_narrowed_to_when_it_is_meant() -> None:
    async with driving() as driver:
        for last in ("escape", "enter"):
            await driver.press("t")
            await driver.sees("no tenant is under the cursor")
            await driver.press(*"t43", "enter")
            await driver.sees("no job of a tenant 't43' is known; there is t17, t42", "enter takes it all the same")
            assert all(needs.tenant is None for needs in driver.source.fetched)
            await driver.press(last)
            await driver.until(lambda: "TENANT for every screen" not in driver.text)
        await driver.until(lambda: driver.source.fetched[-1].tenant == "t43")


async def test_a_cockpit_that_is_started_for_a_tenant_that_nothing_is_known_of_says_so() -> None:
    async with driving(settings=Settings(tenant="t43")) as driver:
        await driver.sees("no job of a tenant 't43' is known; there is t17, t42: t shows all tenants")


async def test_acts_on_jobs_touch_the_tenant_alone(url: str) -> None:
    async with on_queue(url, Settings(tenant="t1")) as (driver, queue):
        ids = await dead_jobs(queue, 3)
        await queue.enqueue([NewJob(new_id(), "send_fax", "{}", queue="legacy", tenant_id="t2")])
        await driver.sees("tenant t1", "7f3a TimeoutError")
        assert "legacy" not in driver.text
        await driver.press("r")
        dialog = await driver.dialog()
        assert dialog.plan.matched.value == 1
        assert "--tenant t1" in driver.text
        await driver.press("tab", "enter")
        await driver.sees("retried 1")
        states: dict[UUID, str] = {job: (await queue.inspect.job(job)).state for job in ids}
        assert sorted(states.values()) == ["dead", "dead", "ready"]
        await driver.press("2")
        await driver.sees("billing")
        assert "legacy" not in driver.text
        await driver.press("3")
        await driver.sees("t1")
        assert "send_fax" not in driver.text
