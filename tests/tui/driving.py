"""Driving the cockpit in tests: what the screen says, keys, and waiting for a fact."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from tests.support.eventually import eventually
from tests.tui.fake import FakeSource
from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Settings
from ultijobs_tui.poller import Budget
from ultijobs_tui.screens.plan import PlanDialog
from ultijobs_tui.widgets.grid import Grid

QUICK = Budget(interval=0.1, min_gap=0.01, deadline=2.0, duty=0.0, blurred=5.0)


def screen_text(app: Cockpit) -> str:
    """What is on the terminal, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


class Driver:
    def __init__(self, app: Cockpit, pilot: Pilot[int], source: FakeSource) -> None:
        self.app = app
        self.pilot = pilot
        self.source = source

    @property
    def text(self) -> str:
        return screen_text(self.app)

    @property
    def grid(self) -> Grid:
        focused = self.app.screen.focused
        return focused if isinstance(focused, Grid) else self.app.screen.query(Grid).first()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def sees(self, *words: str) -> None:
        """Waits until every word is on the screen."""
        await self.until(lambda: all(word in self.text for word in words), that=f"{words} on:\n{self.text}")

    async def until(self, fact: Callable[[], object], that: str = "") -> None:
        async def look() -> bool:
            await self.pilot.pause()
            return bool(fact())

        await eventually(look, that=that)

    async def refreshes(self, count: int) -> None:
        """Waits for as long as so many refreshes would take, by the loop that would make them."""
        ticks: list[None] = []
        timer = self.app.set_interval(self.app.poller.budget.interval, lambda: ticks.append(None))
        await self.until(lambda: len(ticks) >= count)
        timer.stop()

    async def dialog(self) -> PlanDialog:
        await self.until(lambda: isinstance(self.app.screen, PlanDialog), that="a plan dialog")
        assert isinstance(self.app.screen, PlanDialog)
        return self.app.screen


@asynccontextmanager
async def driving(
    source: FakeSource | None = None,
    settings: Settings | None = None,
    *,
    size: tuple[int, int] = (120, 36),
    budget: Budget = QUICK,
) -> AsyncGenerator[Driver]:
    """The cockpit on a live fake source, Incident in front."""
    source = source or FakeSource()
    source.live = True
    app = Cockpit(source, settings or Settings(), budget=budget)
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot, source)
        await driver.until(lambda: app.last_frame is not None or app.link.failures > 0)
        yield driver
