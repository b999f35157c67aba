"""The night in which a local time comes twice, lived through by a database and its schedulers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.scenarios.conftest import Ground, clock, faketime_is_missing
from tests.support.eventually import eventually
from tests.support.scenes import WorkerProcess, scene
from tests.support.servers import Server, start_best_server

pytestmark = [faketime_is_missing, pytest.mark.timeout(240)]

FIRST = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
"""When Berlin's clocks show 02:30 for the first time."""
SECOND = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def until(instant: datetime, seconds: int) -> dict[str, str]:
    """A clock on which it is so many seconds before `instant` now."""
    offset = int((instant - datetime.now(UTC)).total_seconds()) - seconds
    return clock(f"{offset:+d}")


@pytest.fixture
def server() -> Iterator[Server]:
    started = start_best_server()
    try:
        yield started
    finally:
        started.stop()


async def test_a_local_time_that_comes_twice_fires_once_though_the_leader_is_killed_before_it(
    server: Server, pg_url: str
) -> None:
    url, first = server.create(), until(FIRST, 40)
    async with scene(pg_url, "tests.scenarios.trade:nightly_app") as stage:
        night = Ground(server, url, stage)
        go_on_with(server, first)
        one, other = [scheduler(night, name, first) for name in ("one", "other")]
        leading = await leader(one, other)
        await eventually(lambda: seconds_to(night, FIRST, 2), within=60, every=0.1)
        leading.kill()
        survivor = other if leading is one else one
        assert await eventually(lambda: fired(night), within=30) == [FIRST]
        survivor.kill()

        second = until(SECOND, 15)
        go_on_with(server, second)
        one, other = [scheduler(night, name, second) for name in ("third", "fourth")]
        await leader(one, other)
        await eventually(lambda: seconds_to(night, SECOND, -5), within=60, every=0.1)
        assert await fired(night) == [FIRST]
        assert [row["name"] for row in await night.fetch("select name from x_jobs_all")] == ["tick"]
        words = ["tasks", "show", "nightly", "--count", "1", "--json", "--app", stage.app]
        asked = stage.spawn("next", ["-m", "ultijobs_cli", *words], url, **second)
        assert await asked.exit_code() == 0, asked.text()
        assert "2026-10-26T02:30:00+01:00" in json.dumps(json.loads(asked.text().partition("\n")[0])["data"])


def go_on_with(server: Server, environment: dict[str, str]) -> None:
    server.halt()
    server.environment = environment
    server.start()


def scheduler(night: Ground, name: str, environment: dict[str, str]) -> WorkerProcess:
    words = ["scheduler", "--app", night.stage.app, "--interval", "200ms", "--lease", "2s", "--log-format", "json"]
    return night.stage.spawn(name, ["-m", "ultijobs_cli", *words], night.url, **environment)


async def leader(*schedulers: WorkerProcess) -> WorkerProcess:
    """The one that leads."""

    def leading() -> list[WorkerProcess]:
        return [each for each in schedulers if each.lines("jobs.scheduler.leading")]

    return (await eventually(leading, within=40))[0]


async def seconds_to(night: Ground, instant: datetime, most: float) -> bool:
    """True when by the clock of the database it is `most` seconds before `instant`, or later."""
    now = (await night.fetch("select clock_timestamp() as now"))[0]["now"]
    return bool((instant - now).total_seconds() <= most)


async def fired(night: Ground) -> list[datetime]:
    rows = await night.fetch("select occurrence from x_schedule_slots where outcome in ('fired', 'caught-up')")
    return [row["occurrence"] for row in rows]
