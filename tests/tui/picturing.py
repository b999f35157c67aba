"""The cockpit standing still: fed one frame by hand, with a clock that does not move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from tests.tui import data
from tests.tui.driving import screen_text
from tests.tui.fake import FakeSource
from ultijobs.errors import DriverUnavailable
from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Settings
from ultijobs_tui.link import Link

WIDE = (120, 36)
NARROW = (80, 24)
LOST = DriverUnavailable("the database at db-eu-1:5432 does not answer: connection refused")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def cockpit(source: FakeSource | None = None, *, read_only: bool = False, ascii_only: bool = False) -> Cockpit:
    source = source or FakeSource()
    source.live = False
    clock = Clock()
    settings = Settings(read_only=read_only, ascii=ascii_only)
    app = Cockpit(source, settings, monotonic=clock, link=Link(clock, jitter=lambda: 1.0))
    for minutes in range(14, 0, -1):
        app.memory.add(data.minutes_before(minutes))
    app.history.add_workers(data.ago(minutes=1), data.workers_before())
    return app


async def settle(pilot: Pilot[int]) -> None:
    """Feeds what the visible screen asks for, until it asks for nothing else."""
    app = pilot.app
    assert isinstance(app, Cockpit)
    assert isinstance(app.source, FakeSource)
    for _ in range(3):
        await pilot.pause()
        needs = app.asks()
        app.link.ok()
        app.feed(app.source.frame(needs))
    await pilot.pause()


async def lose(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, Cockpit)
    app.link.failed(LOST)
    assert isinstance(app._monotonic, Clock)
    app._monotonic.now += 42
    app._bars()
    await pilot.pause()


def steps(*keys: str, lost: bool = False, then: str | None = None) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Presses each key, with the data of the screen that it leads to."""

    async def run(pilot: Pilot[int]) -> None:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        if lost:
            await lose(pilot)
        if then is not None:
            await pilot.press(*then)
            await pilot.pause()
        app = pilot.app
        assert isinstance(app, Cockpit)
        app.shown = screen_text(app)

    return run


def keep_text(app: Cockpit, path: Path, *, update: bool) -> str | None:
    """The text beside a picture: written on an update, else read back to be compared."""
    shown = getattr(app, "shown", "")
    if update or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown + "\n", encoding="utf-8")
        return None
    return path.read_text(encoding="utf-8").rstrip("\n")
