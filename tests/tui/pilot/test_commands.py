"""What is typed after `:`, and keys of one's own on the screens."""

from __future__ import annotations

from tests.tui import data
from tests.tui.driving import Driver, driving
from ultijobs_tui.desk import Settings
from ultijobs_tui.keymap import Keymap


def first_offer(driver: Driver) -> str:
    offers = driver.app.screen.query_one("CommandList")
    return str(offers.get_option_at_index(0).prompt) if offers.option_count else ""


async def typed(driver: Driver, text: str) -> None:
    await driver.press("colon")
    await driver.until(lambda: driver.app.screen.query("CommandInput"))
    await driver.press(*("space" if sign == " " else sign for sign in text))
    await driver.sees(text)
    await driver.until(
        lambda: text in first_offer(driver).casefold(), that=f"{text} is offered first on\n{driver.text}"
    )
    await driver.press("enter")


async def test_a_job_a_queue_and_a_filter_open_where_they_are_named() -> None:
    async with driving() as driver:
        await typed(driver, f"job {data.uid(1).hex[-8:]}")
        await driver.sees("recorded")
        await typed(driver, "queue mail")
        await driver.sees("RUN/CAP")
        await driver.until(lambda: driver.grid.cursor.key == "mail")
        await typed(driver, "where state:dead")
        await driver.sees("filter state:dead")
        await typed(driver, "tenant t17")
        await driver.sees("tenant t17")


async def test_what_cannot_be_done_is_told() -> None:
    async with driving() as driver:
        await typed(driver, "job ffffffff")
        await driver.sees("X_JOB_UNKNOWN")
        await typed(driver, "where stat:dead")
        await driver.sees("X_FILTER_INVALID")
        await typed(driver, "at noon")
        await driver.sees("write a time such as 14:02")


async def test_a_time_leads_back_and_a_theme_and_an_interval_are_set() -> None:
    async with driving() as driver:
        await typed(driver, "at 14:16:10")
        await driver.sees("◀ REPLAY 14:16:03Z")
        await driver.press("f")
        await typed(driver, "theme ansi-light")
        await driver.until(lambda: driver.app.theme == "ansi-light")
        await typed(driver, "refresh 5s")
        await driver.until(lambda: driver.app.poller.budget.interval == 5)


async def test_every_action_of_the_screen_is_found_by_its_name() -> None:
    async with driving() as driver:
        await typed(driver, "clock times")
        await driver.until(lambda: driver.app.look().absolute)


async def test_keys_of_ones_own_work_and_are_shown_everywhere() -> None:
    settings = Settings(keys=Keymap({"retry": ["ctrl+t"], "export": ["m"], "help": ["f1"]}))
    async with driving(settings=settings) as driver:
        await driver.press("g", "j")
        await driver.sees("ctrl+t retry 3,902", "ctrl+t Retry", "f1 Help")
        await driver.press("m")
        await driver.sees("EXPORT what is shown")
        await driver.press("escape", "ctrl+t")
        assert (await driver.dialog()).plan.action == "retry"
        await driver.press("escape", "e")
        await driver.pilot.pause()
        assert "EXPORT" not in driver.text
        await driver.press("f1")
        await driver.sees("ctrl+t", "run again; stored steps are kept")
