"""The mouse does what the keys do, and no terminal is too small to survive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import OptionList

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs_tui.screens.plan import PlanDialog
from ultijobs_tui.widgets.grid import Grid


async def test_a_tab_opens_by_a_click() -> None:
    async with driving() as driver:
        await driver.pilot.click("#tabs", offset=(18, 0))
        await driver.sees("[2 Queues]", "RUN/CAP")


async def test_a_click_moves_the_cursor_and_a_double_click_opens() -> None:
    async with driving() as driver:
        await driver.pilot.click("#stuck", offset=(30, 3))
        assert driver.grid.cursor.key == "queue:billing"
        await driver.pilot.click("#stuck", offset=(30, 3), times=2)
        await driver.sees("filter state:ready queue:billing")


async def test_a_key_of_the_footer_is_pressed_by_a_click() -> None:
    async with driving() as driver:
        await driver.press("g", "j")
        text = driver.text.splitlines()[-1]
        await driver.pilot.click("#footer", offset=(text.index("Canary"), 0))
        await driver.until(lambda: isinstance(driver.app.screen, PlanDialog))


async def test_the_wheel_moves_and_a_title_sorts() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        head = driver.text.splitlines()[3]
        await driver.pilot.click("#queues", offset=(head.index("READY"), 0))
        await driver.sees("sorted by ready")
        assert driver.app.screen.query_one(Grid).table.rows[0].key == "billing"


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (60, 15), (300, 100)])
async def test_every_screen_lives_in_any_size(size: tuple[int, int]) -> None:
    async with driving(FakeSource(), size=size) as driver:
        for key in (
            *"12345678",
            "tab",
            *"90d5",
            "tab",
            "enter",
            "r",
            "escape",
            "h",
            "escape",
            "question_mark",
            "escape",
        ):
            await driver.press(key)
        assert driver.app.is_running


async def test_a_terminal_that_is_made_smaller_drops_side_columns_and_keeps_the_cursor() -> None:
    async with driving() as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("j", "j")
        key = driver.grid.cursor.key
        assert "TENANT" in driver.text
        await driver.pilot.resize_terminal(80, 24)
        await driver.until(lambda: "TENANT" not in driver.text)
        assert driver.grid.cursor.key == key == str(data.uid(3))


async def test_the_palette_knows_every_action_by_name() -> None:
    async with driving() as driver:
        await driver.press("colon")
        await driver.pilot.pause(0.3)
        await driver.press(*"queues")
        await driver.sees("every queue with its state")
        await driver.press("enter")
        await driver.sees("[2 Queues]")


async def test_a_palette_without_room_for_a_line_survives_every_key() -> None:
    async with driving() as driver:
        await driver.press("colon")
        await driver.until(lambda: driver.app.screen.query_one(OptionList).option_count)
        await driver.press("down", "down")
        await driver.pilot.resize_terminal(10, 3)
        await driver.press("pageup", "pagedown", "down", "up")
        await driver.pilot.resize_terminal(120, 36)
        await driver.press("pagedown", "escape")
        await driver.sees("[1 Incident]")


async def test_leaving_while_an_act_is_applied_asks_once() -> None:
    async with driving(FakeSource(apply_hangs=True)) as driver:
        await driver.press("g", "j", "r")
        await driver.dialog()
        await driver.press(*"3902", "enter")
        await driver.sees("500 of 3,902")
        await driver.press("ctrl+c")
        assert driver.app.is_running
        await driver.press("ctrl+c")
        await driver.until(lambda: not driver.app.is_running)


async def test_a_dialog_that_names_many_jobs_still_says_what_enter_does() -> None:
    async with driving(size=(80, 24)) as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("a", "X")
        await driver.dialog()
        await driver.sees("enter Keep", "Y copies all of it")


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_a_long_list_leaves_the_footer_in_sight(size: tuple[int, int]) -> None:
    many = range(100)
    source = FakeSource(
        overview=data.overview([replace(data.stuck()[0], key=f"s{n}") for n in many]),
        queues=[replace(data.queues()[0], queue=f"q{n}") for n in many],
        leases=[data.lease(n, "export_csv", "w-03", 20, 5) for n in many],
        workers=[data.worker(n, f"w-{n}") for n in many],
        activity=[data.act(n, "pause", f"queue:q{n}", data.ago(minutes=n)) for n in many],
    )
    async with driving(source, size=size) as driver:
        for key in ("1", "2", "4", "6", "0"):
            await driver.press(key)
            await driver.until(lambda: len(driver.grid.table.rows) == len(many))
            assert "? Help" in driver.text.splitlines()[-1], key
