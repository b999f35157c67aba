"""The past on the same screens: named on the first row, how old it is, and nothing can be done to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from tests.tui import data
from tests.tui.driving import Driver, driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import Count
from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Settings
from ultijobs_tui.entry import Options, replay
from ultijobs_tui.recording import Recorder, Recording
from ultijobs_tui.replay import ReplaySource


def at(seconds: float, dead: int):
    stuck = [replace(s, count=Count(dead)) if s.cause else s for s in data.stuck()]
    return replace(data.overview(stuck), as_of=data.NOW + timedelta(seconds=seconds))


async def passing(driver: Driver, seconds: float, dead: int) -> None:
    """Lets the source move on, and waits until that is kept."""
    overview = at(seconds, dead)
    driver.source.overview, driver.source.as_of = overview, overview.as_of
    ring = driver.app.travel.moments
    await driver.until(lambda: len(ring) and ring.at(len(ring) - 1) == overview.as_of)


async def test_comma_and_dot_go_through_the_past_and_f_is_now() -> None:
    async with driving() as driver:
        await passing(driver, 60, 111)
        await passing(driver, 120, 222)
        await driver.sees("222 dead letters", "● LIVE")
        await driver.press("comma")
        await driver.sees("◀ REPLAY 14:17:03Z", "−1m0", "111 dead letters", "acts off")
        await driver.press("comma")
        await driver.sees("◀ REPLAY 14:16:03Z", "3,902 dead letters")
        await driver.press("comma")
        await driver.sees("nothing earlier is kept")
        await driver.press("full_stop")
        await driver.sees("111 dead letters")
        await driver.press("greater_than_sign")
        await driver.sees("◀ REPLAY 14:18:03Z", "222 dead letters")
        await driver.press("less_than_sign")
        await driver.sees("◀ REPLAY 14:17:03Z")
        await driver.press("f")
        await driver.sees("● LIVE", "222 dead letters")


async def test_the_past_goes_along_to_queues_and_dead_and_the_present_is_still_kept() -> None:
    async with driving() as driver:
        await passing(driver, 60, 111)
        await driver.press("comma", "2")
        await driver.sees("REPLAY", "RUN/CAP", "51,201")
        await driver.press("5")
        await driver.sees("REPLAY", "7f3a TimeoutError", "not recorded")
        await driver.press("3")
        await driver.sees("REPLAY", "not recorded")
        await passing(driver, 120, 222)
        assert len(driver.app.travel.moments) == 3
        await driver.sees("REPLAY 14:16:03Z")


async def test_nothing_can_be_done_to_the_past() -> None:
    async with driving() as driver:
        await passing(driver, 60, 111)
        await driver.press("comma")
        await driver.sees("REPLAY")
        for key in ("r", "c", "p", "h", "ctrl+z", "t"):
            await driver.press(key)
            await driver.sees("replay: press f for live")
        assert driver.source.planned == []


async def test_what_is_read_is_recorded_and_opened_without_a_database(tmp_path, capsys) -> None:
    file = tmp_path / "incident.jsonl"
    recorder = Recorder(file, "db-eu-1/shop")
    source = FakeSource(live=True)
    app = Cockpit(source, Settings(refresh=0.1), recorder=recorder)
    async with app.run_test(size=(120, 36)) as pilot:
        driver = Driver(app, pilot, source)
        await driver.until(lambda: len(app.travel.moments))
        await passing(driver, 60, 111)
    recorder.close()
    assert b"inv_8001" not in file.read_bytes()

    past = Recording(file)
    app = Cockpit(ReplaySource(f"incident.jsonl of {past.title}"), Settings(at=data.NOW), past=past)
    async with app.run_test(size=(120, 36)) as pilot:
        driver = Driver(app, pilot, source)
        await driver.sees("◀ REPLAY 14:16:03Z", "3,902 dead letters")
        await driver.press("full_stop")
        await driver.sees("111 dead letters")
        await driver.press("f")
        await driver.sees("this is a recording: there is no live")
        await driver.press("r")
        await driver.sees("this is a recording")
    assert await asyncio.to_thread(replay, Options(replay=file, once=True, at="14:16:30")) == 0
    assert "3,902 dead letters" in capsys.readouterr().out
