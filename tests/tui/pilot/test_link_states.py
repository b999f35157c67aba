"""Live, frozen and lost are told apart, and none of them blanks the screen or holds it open."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs.errors import DriverUnavailable
from ultijobs.inspection import Count, Stuck, StuckKind
from ultijobs_tui.poller import Budget


async def test_a_lost_connection_keeps_the_data_and_comes_back() -> None:
    async with driving() as driver:
        await driver.sees("● LIVE", "PAUSED by ops")
        driver.source.error = DriverUnavailable("the database at db-eu-1 does not answer")
        await driver.sees("✗ LOST", "X_DRIVER_UNAVAILABLE", "PAUSED by ops")
        driver.source.error = None
        await driver.sees("● LIVE", "1 Incident")


async def test_frozen_asks_nothing_and_says_so() -> None:
    async with driving() as driver:
        await driver.press("f")
        await driver.sees("FROZEN")
        asked = len(driver.source.fetched)
        driver.source.hint()
        await driver.refreshes(3)
        assert len(driver.source.fetched) == asked
        await driver.press("f")
        await driver.sees("● LIVE")


async def test_five_hundred_hints_make_few_fetches() -> None:
    async with driving(budget=Budget(interval=30, min_gap=0.5, deadline=2, duty=0)) as driver:
        await driver.until(lambda: driver.source.hint.__name__ != "<lambda>")
        asked = len(driver.source.fetched)
        for _ in range(500):
            driver.source.hint()
        await driver.until(lambda: len(driver.source.fetched) > asked)
        assert len(driver.source.fetched) <= asked + 2


async def test_leaving_does_not_wait_for_a_query_that_hangs() -> None:
    source = FakeSource()
    async with driving(source, budget=Budget(interval=0.05, min_gap=0.01, deadline=30, duty=0)) as driver:
        source.hangs = True
        asked = len(source.fetched)
        await driver.until(lambda: len(source.fetched) > asked)
        began = time.monotonic()
        await driver.press("q")
        await driver.until(lambda: not driver.app.is_running)
    assert time.monotonic() - began < 10


async def test_a_detector_that_failed_is_a_row_and_the_others_stay() -> None:

    failed = Stuck(
        "detector:leases", StuckKind.FAILED_DETECTOR, 1, Count(0), "leases: too slow", None, None, None, None
    )
    source = FakeSource(overview=replace(data.overview(), stuck=[*data.stuck(), failed]))
    async with driving(source) as driver:
        await driver.sees("?? ", "leases: too slow", "PAUSED by ops")


async def test_without_focus_the_database_is_asked_rarely() -> None:
    async with driving() as driver:
        driver.app.on_app_blur()
        asked = len(driver.source.fetched)
        await driver.refreshes(6)
        assert len(driver.source.fetched) <= asked + 2
        driver.app.on_app_focus()
        await driver.until(lambda: len(driver.source.fetched) > asked + 1)


async def test_a_part_that_is_too_slow_keeps_its_last_rows_and_says_since_when() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.sees("RUN/CAP", "integrations")
        real = driver.source.frame

        def slow(needs):
            frame = real(needs)
            return replace(frame, queues=None, failures={"queues": "canceling statement due to statement timeout"})

        driver.source.frame = slow
        await driver.sees("?? queues: canceling statement", "shown as of 14:16:03", "integrations", "● LIVE")
        driver.source.frame = real
        await driver.sees("sorted by oldest", "integrations")
