"""The incidents of the demo stay what they are, whenever they are tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from ultijobs import App
from ultijobs.errors import DriverUnavailable
from ultijobs.inspection import Inspector, Stuck, StuckKind
from ultijobs.memory import MemoryDriver
from ultijobs_cli.demo import incidents, run


async def test_the_index_takes_the_connection_and_never_answers_in_whatever_process_it_is_asked() -> None:
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(incidents.ask_index(), 0.3)


async def test_a_tenant_with_many_slow_jobs_waits_at_its_limit() -> None:
    async with App(jobs=[incidents], driver=MemoryDriver(), limits=incidents.LIMITS) as app:
        await app.enqueue_many(incidents.mirror_release, [incidents.Ticket(number=n) for n in range(5)])
        seen: list[Stuck] = []

        async def throttled() -> bool:
            seen[:] = (await Inspector(app.driver).overview()).stuck
            return [line.kind for line in seen] == [StuckKind.THROTTLED]

        async with working(app, concurrency=4, grace="0.1s"):
            await eventually(throttled)
        (line,) = seen
        assert (line.tenant, line.count.value) == ("team-slow", 3)
        assert line.why.startswith("2 at once")


def test_a_database_that_goes_away_is_told_and_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(DriverUnavailable, match="has gone away: connection is closed"), run.gone(tmp_path):
        raise asyncpg.InterfaceError("connection is closed")


async def test_the_screen_stays_until_it_is_left_whatever_becomes_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []

    async def broken(*_: object, **__: object) -> None:
        raise asyncpg.InterfaceError("connection is closed")

    async def screen(url: str) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        left.append(url)

    monkeypatch.setattr(run, "work", broken)
    nothing: Any = None
    stage = run.Stage(nothing, "url", nothing, nothing, nothing, 1, print)
    with pytest.raises(asyncpg.InterfaceError):
        await run.perform(stage, run.Options(), "url", screen)
    assert left == ["url"]
