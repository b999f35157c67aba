"""Workers, leases and what operators did: where each leads, and what can be done there."""

from __future__ import annotations

from dataclasses import replace

from textual.widgets import Button

from tests.tui import data
from tests.tui.driving import Driver, driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import Action
from ultijobs_tui.screens.reader import TextDialog


async def on_worker(driver: Driver, name: str) -> None:
    await driver.press("6")
    await driver.until(lambda: driver.grid.table.rows)
    driver.grid.go(next(str(w.instance) for w in data.workers() if w.worker_id == name))
    await driver.until(lambda: driver.app.screen.under().worker_id == name)


async def test_from_a_worker_to_its_jobs_to_a_run_and_back() -> None:
    source = FakeSource(details={lease.id: data.detail() for lease in data.leases()})
    async with driving(source) as driver:
        await on_worker(driver, "w-17")
        await driver.press("enter")
        await driver.sees("LEASE LEFT", "find worker:w-17")
        assert [row.key for row in driver.grid.table.rows] == [str(lease.id) for lease in data.leases()[:3]]
        await driver.press("enter")
        await driver.sees("✗ failed")
        await driver.press("escape")
        await driver.sees("find worker:w-17")
        await driver.press("escape")
        await driver.until(lambda: len(driver.grid.table.rows) == len(data.leases()))


async def test_from_a_lease_to_the_worker_that_holds_it() -> None:
    async with driving() as driver:
        await driver.press("4")
        await driver.until(lambda: driver.grid.table.rows)
        driver.grid.go(str(data.leases()[3].id))
        await driver.press("w")
        await driver.sees("process", "w-09")
        assert driver.app.screen.under().worker_id == "w-09"


async def test_from_a_queue_to_the_workers_that_serve_it() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        driver.grid.go("exports")
        await driver.press("w")
        await driver.sees("find queue:exports", "process")
        assert {w.worker_id for w in data.workers() if "exports" in w.queues} == {"w-09", "w-17"}
        assert len(driver.grid.table.rows) == 2


async def test_a_worker_is_drained_by_a_plan_and_the_drain_can_be_undone() -> None:
    async with driving() as driver:
        await on_worker(driver, "w-03")
        await driver.press("D")
        dialog = await driver.dialog()
        assert (dialog.plan.action, dialog.plan.target.worker) == (Action.DRAIN_WORKER, "w-03")
        dialog.query_one("#apply", Button).press()
        await driver.sees("draining worker w-03", "ctrl+z undo")
        await driver.press("ctrl+z")
        await driver.until(lambda: len(driver.source.applied) == 2)
        assert driver.source.applied[1].action is Action.RESUME_WORKER


async def test_a_drained_worker_may_be_told_to_exit_and_that_cannot_be_undone() -> None:
    async with driving() as driver:
        await on_worker(driver, "w-03")
        await driver.press("D")
        dialog = await driver.dialog()
        assert "--exit" not in driver.text
        dialog.query_one("#exit", Button).press()
        await driver.sees("workers drain w-03 --exit", "then the process ends")
        dialog.query_one("#apply", Button).press()
        await driver.sees("it exits then")
        assert driver.source.applied[0].options.exit
        await driver.press("ctrl+z")
        await driver.sees("nothing to undo")


async def test_keys_that_do_not_fit_a_worker_say_why() -> None:
    async with driving() as driver:
        for name, key, why in (
            ("w-17", "D", "this worker is gone"),
            ("w-12", "D", "this worker is drained"),
            ("w-03", "u", "this worker was not drained"),
        ):
            await on_worker(driver, name)
            await driver.press(key)
            await driver.sees(why)
        assert driver.source.planned == []


async def test_a_lease_is_cancelled_by_its_id_whatever_the_list_has_become() -> None:
    async with driving() as driver:
        await driver.press("4")
        await driver.until(lambda: driver.grid.table.rows)
        driver.grid.go(str(data.leases()[5].id))
        driver.source.leases = [replace(lease, worker_id="w-99") for lease in reversed(data.leases())]
        await driver.press("X")
        dialog = await driver.dialog()
        assert dialog.plan.target.ids == (data.leases()[5].id,)


async def test_an_act_is_shown_whole_and_its_command_copied() -> None:
    async with driving() as driver:
        await driver.press("0")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("j", "j", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, TextDialog))
        await driver.sees("provider down", "queue:billing")
        await driver.press("escape", "Y")
        assert driver.app.clipboard == "ultijobs queues pause billing --reason 'provider down'"


async def test_the_end_of_the_activity_turns_the_page() -> None:
    rows = [data.act(n, "pause", f"queue:q{n}", data.ago(minutes=n)) for n in range(100)]
    async with driving(FakeSource(activity=rows)) as driver:
        await driver.press("0")
        await driver.sees("pgdn next")
        await driver.press("G", "pagedown")
        await driver.until(lambda: driver.source.fetched[-1].activity.after == rows[-1].id)
        await driver.sees("page 2")
        await driver.press("g", "pageup")
        await driver.until(lambda: driver.source.fetched[-1].activity.after is None)
