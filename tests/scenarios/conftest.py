"""A PostgreSQL of the scenario's own to be stopped, locked and starved; what ran is counted in another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.scenarios.trade import JOBS, one_of_many
from tests.support.eventually import eventually
from tests.support.scenes import Scene, WorkerProcess, scene
from tests.support.servers import Server, start_best_server
from tests.support.stage import Ask
from ultijobs import App

LATE = 0.5
"""What a time may be over on a machine that has other things to do."""

_FAKETIME = next(iter(sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))), None)
faketime_is_missing = pytest.mark.skipif(_FAKETIME is None, reason="faketime is not installed")


def clock(offset: str) -> dict[str, str]:
    """The environment of a process whose wall clock is that far off."""
    return {"LD_PRELOAD": str(_FAKETIME), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@dataclass
class Ground:
    """The server in trouble, the queue's database on it, and the stage that starts workers on it."""

    server: Server
    url: str
    stage: Scene

    async def worker(self, name: str, **options: Any) -> WorkerProcess:
        given: dict[str, Any] = {"url": self.url, "concurrency": 8, **options}
        return await self.stage.worker(name, **given)

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Over a connection of its own, which may write whatever the server's settings say."""
        connection = await asyncpg.connect(
            self.url, server_settings={"default_transaction_read_only": "off", "statement_timeout": "0"}
        )
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    async def set(self, name: str, value: str | None) -> None:
        """A setting of the whole server, for the sessions that there are too; None takes it back."""
        await self.fetch(f"alter system reset {name}" if value is None else f"alter system set {name} = '{value}'")
        await self.fetch("select pg_reload_conf()")

    async def states(self) -> Counter[str]:
        return Counter(row["state"] for row in await self.fetch("select state from x_jobs_all"))

    async def all_done(self, count: int, within: float = 60.0) -> None:
        """Each of the `count` jobs is done, and there is no other."""

        async def done() -> bool:
            return await self.states() == {"done": count}

        try:
            await eventually(done, within=within, every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.states()}\n{self.stage.logs()}") from None

    async def latency(self, key: str) -> float:
        """Seconds from the enqueue of a job to its start, by the two databases' one clock."""
        return await self.started((await one_of_many.enqueue(Ask(key=key))).id)

    async def started(self, job: UUID) -> float:
        effects = await eventually(lambda: self.stage.effects("start", job), within=30)
        enqueued = (await self.fetch("select created_at as at from x_jobs_all where id = $1", job))[0]["at"]
        seconds: float = (effects[0]["at"] - enqueued).total_seconds()
        return seconds

    async def executed_once(self) -> None:
        assert [row["job_id"] for row in await self.executions() if row["times"] > 1] == []

    async def executions(self) -> list[asyncpg.Record]:
        return await self.stage.fetch("select job_id, count(*) as times from fx where step = 'start' group by 1")


def calm(*workers: WorkerProcess) -> None:
    """No worker has ended, and of no kind of line has one written more than one a second; of a job, a job."""
    for worker in workers:
        assert worker.process.poll() is None, worker.text()[-3000:]
        by_kind: dict[tuple[str, str], list[datetime]] = {}
        for line in worker.lines():
            by_kind.setdefault((line["event"], line.get("job_id", "")), []).append(datetime.fromisoformat(line["ts"]))
        for kind, times in by_kind.items():
            assert len(times) <= (times[-1] - times[0]).total_seconds() + 2, (worker.name, kind, len(times))


def p95(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95) - 1]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Server]:
    server = start_best_server(max_connections="100")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
async def ground(cluster: Server, pg_url: str) -> AsyncIterator[Ground]:
    url = cluster.create()
    async with scene(pg_url, "tests.scenarios.trade:app") as stage:
        yield Ground(cluster, url, stage)
    cluster.drop(url)


@pytest.fixture
async def here(ground: Ground) -> AsyncIterator[App[Any]]:
    """This process as the one that enqueues and publishes."""
    async with App(jobs=JOBS, driver=ground.url) as opened:
        yield opened
