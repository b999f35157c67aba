"""A stage for workers as real processes: one database, one application module, effects that are counted apart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import asyncpg

import ultijobs
import ultijobs_cli
from tests.support.eventually import eventually
from ultijobs import App

ROOT = Path(__file__).parents[2]
# Where this process has ultijobs from comes first, so that an installed wheel is what the children run.
PATHS = [str(Path(package.__file__ or "").parents[1]) for package in (ultijobs, ultijobs_cli)] + [str(ROOT)]
EFFECTS = """\
create table if not exists fx (
  n bigint generated always as identity,
  job_id uuid, step text, attempt int, pid int, at timestamptz default clock_timestamp())"""


@dataclass
class WorkerProcess:
    """One `ultijobs worker` (or another command) as a process of its own; its log lines are read from a file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    async def exit_code(self, within: float = 40.0) -> int:
        code = await eventually(
            lambda: (self.process.poll(),) if self.process.poll() is not None else (), within=within
        )
        return int(code[0])

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """The log lines so far that are objects, of one event or of all."""
        found: list[dict[str, Any]] = []
        for line in self.text().splitlines():
            try:
                read = json.loads(line)
            except ValueError:
                continue
            if isinstance(read, dict) and (event is None or read.get("event") == event):
                found.append(read)
        return found

    async def said(self, event: str, within: float = 40.0) -> dict[str, Any]:
        """The first line of that event, once there is one."""
        try:
            lines = await eventually(lambda: self.lines(event), within=within, that=f"{self.name} says {event}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()[-3000:]}") from None
        return lines[0]


@dataclass
class Scene:
    """Asks the database for facts, starts workers, and leaves none of them behind."""

    url: str
    pool: asyncpg.Pool
    app: str
    scratch: Path
    workers: list[WorkerProcess] = field(default_factory=list)
    here: App[Any] | None = None
    """The application of the test's own process, when workers run in it."""

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        return await self.pool.fetch(statement, *values)

    async def value(self, statement: str, *values: Any) -> Any:
        return await self.pool.fetchval(statement, *values)

    async def job(self, id: UUID) -> asyncpg.Record:
        row = await self.pool.fetchrow("select * from x_jobs_all where id = $1", id)
        assert row is not None, f"the job {id} has no row"
        return row

    async def ended(self, id: UUID, state: str = "done", within: float = 30.0) -> asyncpg.Record:
        """The job's row once it is in `state`."""
        try:
            return await eventually(lambda: self._in_state(id, state), within=within, that=f"{id} is {state}")
        except AssertionError as error:
            row = dict(await self.job(id))
            raise AssertionError(f"{error}\n{row}\n{self.logs()}") from None

    async def _in_state(self, id: UUID, state: str) -> asyncpg.Record | None:
        row = await self.job(id)
        return row if row["state"] == state else None

    async def effects(self, step: str | None = None, job: UUID | None = None) -> list[asyncpg.Record]:
        return await self.fetch(
            "select * from fx where ($1::text is null or step = $1) and ($2::uuid is null or job_id = $2) order by n",
            step,
            job,
        )

    async def effect(self, step: str, count: int = 1, within: float = 30.0) -> list[asyncpg.Record]:
        """The effects of `step` once there are `count`."""

        async def enough() -> list[asyncpg.Record]:
            found = await self.effects(step)
            return found if len(found) >= count else []

        try:
            return await eventually(enough, within=within, that=f"{count} effects of {step}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        return "\n".join(f"-- {worker.name}\n{worker.text()[-3000:]}" for worker in self.workers)

    def spawn(self, name: str, command: list[str], url: str | None = None, **env: str) -> WorkerProcess:
        log = self.scratch / f"{name}-{len(self.workers)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", *command],
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(PATHS),
                    "ULTIJOBS_DATABASE_URL": url or self.url,
                    "FX_URL": self.url,
                    **env,
                },
            )
        worker = WorkerProcess(name, process, log)
        self.workers.append(worker)
        return worker

    async def worker(
        self,
        name: str = "w1",
        *,
        url: str | None = None,
        ready: bool = True,
        env: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> WorkerProcess:
        """A worker with short times, once it has started; `url` is where it finds the database."""
        flags = {"lease": "3s", "poll": "0.2s", "grace": "5s", "concurrency": 4, "name": name, **options}
        words = [word for key, value in flags.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        command = ["-m", "ultijobs_cli", "worker", "--app", self.app, "--log-format", "json", *words]
        worker = self.spawn(name, command, url, **env)
        if ready:
            await worker.said("jobs.worker.started")
        return worker


@asynccontextmanager
async def scene(url: str, app: str) -> AsyncIterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="ultijobs-scene-") as scratch:
        pool = await asyncpg.create_pool(url, min_size=1, max_size=4)
        stage = Scene(url, pool, app, Path(scratch))
        try:
            await pool.execute(EFFECTS)
            yield stage
        finally:
            for worker in stage.workers:
                if worker.process.poll() is None:
                    worker.process.kill()
            for worker in stage.workers:
                worker.process.wait(10)
            await asyncio.wait_for(pool.close(), 10)
