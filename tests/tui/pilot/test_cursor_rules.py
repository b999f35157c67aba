"""An act is for what the operator looked at when the key was pressed."""

from __future__ import annotations

from dataclasses import replace

from tests.tui import data
from tests.tui.driving import Driver, driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import Action, JobPage, JobRow


async def show_rows(driver: Driver, rows: list[JobRow]) -> None:
    driver.source.page = JobPage(rows, None, data.NOW)
    keys = {str(row.id) for row in rows}
    await driver.until(lambda: {row.key for row in driver.grid.table.rows} == keys)


async def on_jobs(driver: Driver, rows: list[JobRow]) -> None:
    driver.source.page = JobPage(rows, None, data.NOW)
    await driver.press("3")
    await driver.until(lambda: len(driver.grid.table.rows) == len(rows))


ROWS = [data.dead_job(n) for n in range(1, 9)]


async def test_the_cursor_stays_on_its_job_when_the_list_is_turned_over() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        await driver.press("j", "j")
        driver.source.page = JobPage(ROWS[::-1], None, data.NOW)
        await driver.until(lambda: driver.grid.table.rows[0].key == str(ROWS[-1].id))
        assert driver.grid.cursor.key == str(ROWS[2].id)


async def test_the_cursor_stays_on_its_job_when_others_arrive_above() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        await driver.press("j", "j")
        await show_rows(driver, [data.dead_job(n) for n in range(90, 100)] + ROWS)
        assert driver.grid.cursor.key == str(ROWS[2].id)
        assert driver.grid.cursor.index == 12


async def test_a_row_that_left_stays_for_one_tick_as_gone() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        driver.source.page = JobPage(ROWS[:2] + ROWS[3:], None, data.NOW)
        seen: list[str] = []

        def gone_then_left() -> bool:
            cells = {row.key: row.cells[3].text for row in driver.grid.table.rows}
            seen.append(cells.get(str(ROWS[2].id), "left"))
            return seen[-1] == "left"

        await driver.until(gone_then_left)
        assert "gone" in seen


async def test_rows_of_a_page_that_is_another_one_altogether_are_not_told_as_gone() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        others = [data.job(n) for n in range(90, 100)]
        driver.source.page = JobPage(others, None, data.NOW)
        keys = {str(row.id) for row in others}
        await driver.until(lambda: not keys.isdisjoint(row.key for row in driver.grid.table.rows))
        assert {row.key for row in driver.grid.table.rows} == keys


async def test_a_stopping_key_is_refused_once_after_the_row_under_the_cursor_left() -> None:
    async with driving() as driver:
        rows = [data.job(n) for n in range(1, 9)]
        await on_jobs(driver, rows)
        await driver.press("j", "j")
        await show_rows(driver, rows[:2] + rows[3:])
        assert driver.grid.cursor.key == str(rows[3].id)
        await driver.press("X")
        await driver.sees("the row under the cursor has changed")
        assert driver.source.planned == []
        await driver.press("X")
        await driver.dialog()
        assert [target.ids for _, target, _ in driver.source.planned] == [(rows[3].id,)]


async def test_a_plan_is_for_the_job_that_was_under_the_cursor_at_the_key_press() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        await driver.press("j", "j", "r")
        driver.source.page = JobPage(ROWS[::-1], None, data.NOW)
        dialog = await driver.dialog()
        assert dialog.plan.target.ids == (ROWS[2].id,)


async def test_the_list_under_a_dialog_stands_still() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        below = driver.grid
        await driver.press("r")
        await driver.dialog()
        driver.source.page = JobPage(ROWS[::-1], None, data.NOW)
        asked = len(driver.source.fetched)
        await driver.until(lambda: len(driver.source.fetched) > asked + 2)
        assert [row.key for row in below.table.rows] == [str(row.id) for row in ROWS]
        assert all(needs.page is None for needs in driver.source.fetched[asked + 1 :])


async def test_what_is_applied_is_the_plan_and_not_what_the_list_has_become() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        await driver.press("space", "space", "r")
        dialog = await driver.dialog()
        driver.source.page = JobPage([data.dead_job(77)], None, data.NOW)
        await driver.press("tab", "enter")
        await driver.until(lambda: driver.source.applied)
        [plan] = driver.source.applied
        assert set(plan.target.ids) == {ROWS[0].id, ROWS[1].id}
        assert (plan.action, plan.as_of) == (Action.RETRY, dialog.plan.as_of)


async def test_marks_survive_a_refresh_and_are_counted_when_they_are_out_of_sight() -> None:
    async with driving() as driver:
        await on_jobs(driver, ROWS)
        await driver.press("space", "space")
        await show_rows(driver, ROWS[1:])
        await driver.sees("2 marked (1 not in this list)")


async def test_an_act_unmarks_what_it_did_and_keeps_what_it_refused() -> None:
    source = FakeSource()
    async with driving(source) as driver:
        await on_jobs(driver, ROWS)
        await driver.press("space", "space", "space", "r")
        await driver.dialog()
        real = source.apply

        async def but_one(plan, **kw):
            outcome = await real(plan, **kw)
            return replace(outcome, done=outcome.done[:2])

        driver.app.screen._apply = but_one
        await driver.press("tab", "enter")
        await driver.sees("1 marked")


async def test_the_page_below_is_asked_for_by_its_key_and_the_one_above_again() -> None:
    async with driving() as driver:
        driver.source.page = JobPage(ROWS, "after-8", data.NOW)
        await driver.press("3")
        await driver.until(lambda: len(driver.grid.table.rows) == len(ROWS))
        await driver.press("G", "pagedown")
        await driver.until(lambda: driver.source.fetched[-1].page and driver.source.fetched[-1].page.after == "after-8")
        await driver.sees("page 2")
        await driver.press("g", "pageup")
        await driver.sees("page 1")


async def test_arrows_and_page_keys_move_the_cursor_of_a_list_that_scrolls() -> None:
    async with driving() as driver:
        await on_jobs(driver, [data.dead_job(n) for n in range(1, 120)])
        await driver.press("down", "down", "pagedown")
        assert driver.grid.cursor.index == 2 + driver.grid.page
        await driver.press("pageup", "up")
        assert driver.grid.cursor.index == 1
        await driver.press("end")
        assert driver.grid.cursor.index == 118
        await driver.press("home")
        assert driver.grid.cursor.index == 0
