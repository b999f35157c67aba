"""An application with its scheduler on a clock that stands still, and days that pass in no time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel

from ultijobs import App, Request, job, task
from ultijobs._queue.schedule import Slot, TaskState
from ultijobs._queue.where import ANY
from ultijobs._scheduler.rounds import Rounds
from ultijobs.memory import MemoryDriver

INTERVAL, LEASE = timedelta(seconds=1), timedelta(seconds=30)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Scan(BaseModel):
    at: str


@job(Scan, idempotency_key=lambda i: i.at, tenant="none")
async def scan(input: Scan) -> None: ...


def scan_of(occurrence: datetime) -> Request[Scan]:
    return scan.request(Scan(at=occurrence.isoformat()))


class HandClock:
    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class World:
    """Schedulers over one store in memory, and its time."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        self._log = log
        self.clock = HandClock(datetime(2026, 6, 1, 12, 0, tzinfo=UTC))
        self.driver = MemoryDriver(self.clock)
        self._apps: list[App[Any]] = []

    async def scheduler(self, *tasks: Any, jobs: Iterable[Any] = (scan,)) -> Rounds:
        app = App(jobs=list(jobs), tasks=tasks, driver=self.driver)
        self._apps.append(app)
        await app.open()
        return Rounds(app, interval=INTERVAL, lease=LEASE)

    def passes(self, by: timedelta) -> None:
        self.clock.time += by

    async def jobs(self) -> list[tuple[str, str]]:
        """Names and keys, in the order of their making."""
        rows = (await self.driver.inspect.jobs(ANY, limit=1_000)).rows
        return [(row.name, row.idempotency_key or "") for row in reversed(rows)]

    async def occurrences(self, task: str) -> list[str]:
        """The slots of a task that were fired, in the order of their jobs."""
        keys = [key.removeprefix(f"{task}:") for _, key in await self.jobs() if key.startswith(f"{task}:")]
        return [key.partition("Z:")[0] for key in keys]

    async def slots(self, task: str) -> list[Slot]:
        return (await self.driver.schedule.slots(task))[::-1]

    async def state(self, task: str) -> TaskState:
        (found,) = [each for each in await self.driver.schedule.states() if each.task == task]
        return found

    def said(self, event: str, level: int | None = None) -> list[str]:
        return [
            line.getMessage()
            for line in self._log.records
            if getattr(line, "event", "") == event and level in {None, line.levelno}
        ]

    async def close(self) -> None:
        for app in self._apps:
            await app.close()


async def one_round(rounds: Rounds) -> timedelta:
    """A round and all that it starts; how long it would wait for the next."""
    wait = await rounds.round()
    await rounds.settled()
    return wait


@pytest_asyncio.fixture
async def world(caplog: pytest.LogCaptureFixture) -> AsyncIterator[World]:
    caplog.set_level(logging.DEBUG, "ultijobs")
    made = World(caplog)
    yield made
    await made.close()


def every_minute(**options: Any) -> Any:
    @task(**{"cron": "* * * * *", "tz": "UTC", **options})
    def minutely(occurrence: datetime) -> list[Request[Scan]]:
        return [scan_of(occurrence)]

    return minutely
