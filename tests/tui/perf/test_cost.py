"""What a refresh costs, as counts: lines drawn again and questions asked."""

from __future__ import annotations

from dataclasses import replace

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from tests.tui.picturing import cockpit, settle
from ultijobs.inspection import Count, JobPage
from ultijobs_tui.table import Cell, Column, Row, Table
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines


def drawn(app) -> int:
    widgets = (*app.screen.query(Grid), *app.screen.query(Lines))
    return sum(widget.redrawn for widget in widgets)


async def test_a_refresh_that_changes_nothing_draws_nothing() -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        for key in "1234567890d":
            await pilot.press(key)
            await settle(pilot)
            before = drawn(app)
            app.feed(app.source.frame(app.asks()))
            await pilot.pause()
            assert drawn(app) == before, key


async def test_one_changed_row_is_one_line() -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        grid = app.screen.query_one(Grid)
        before = grid.redrawn
        lines = data.stuck()
        lines[4] = replace(lines[4], count=Count(188))
        app.source.overview = data.overview(lines)
        app.feed(app.source.frame(app.asks()))
        await pilot.pause()
        assert grid.redrawn - before == 1


async def test_moving_the_cursor_draws_two_lines() -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        grid = app.screen.query_one(Grid)
        before = grid.redrawn
        await pilot.press("j")
        assert grid.redrawn - before == 2


async def test_a_hundred_thousand_rows_cost_the_visible_ones() -> None:
    app = cockpit()
    columns = (Column("N", 8), Column("TEXT", 10, grow=True))

    def table(mark: str) -> Table:
        return Table(columns, tuple(Row(str(n), (Cell(str(n)), Cell(mark))) for n in range(100_000)))

    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        grid = app.screen.query_one(Grid)
        grid.set_table(table("a"))
        await pilot.pause()
        before = grid.redrawn
        grid.set_table(table("b"))
        assert grid.redrawn - before <= grid.size.height


async def test_a_screen_asks_for_itself_alone() -> None:
    async with driving() as driver:
        shown = {
            "1": "overview",
            "2": "queues",
            "3": "page",
            "4": "leases",
            "5": "causes",
            "6": "workers",
            "7": "backfills",
            "8": "tasks",
            "9": "outbox",
            "d": "health",
            "0": "activity",
        }
        for key, asks in shown.items():
            await driver.press(key)
            await driver.until(lambda asks=asks: getattr(driver.source.fetched[-1], asks))
            needs = driver.source.fetched[-1]
            others = {"overview", "queues", "causes", "job", "why", "activity", "tasks"} - {asks}
            assert not any(getattr(needs, other) for other in others)


async def test_the_dead_letters_settle_and_do_not_ask_in_circles() -> None:
    source = FakeSource(dead_page=JobPage([data.dead_job(n) for n in range(1, 9)], None, data.NOW))
    async with driving(source) as driver:
        await driver.press("5")
        await driver.sees("jobs of 7f3a", "newest 8")
        asked = len(source.fetched)
        started = driver.app._monotonic()
        await driver.until(lambda: driver.app._monotonic() - started > 1)
        assert len(source.fetched) - asked <= 15
