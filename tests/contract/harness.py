"""What a case of the contract suite may use: a driver, its time, a second client, a crash. Nothing else."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from tests.contract.recording import Calls, recorded
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.driver import Driver
from ultijobs.memory import MemoryDriver
from ultijobs.postgres import PostgresDriver


class Harness(ABC):
    """One store, at rest: its time moves by `advance` alone."""

    driver: Driver

    @abstractmethod
    async def advance(self, by: timedelta) -> None:
        """Moves the store's time."""

    @abstractmethod
    async def second(self) -> Driver:
        """Another client of the same store."""

    @abstractmethod
    async def write_state(self, id: UUID, word: str) -> None:
        """Writes a state that this release does not know, as a newer one would."""

    async def crash(self, *jobs: ClaimedJob) -> None:
        """Lets the leases of these lapse, as when their worker is gone."""
        now = await self.driver.inspect.now()
        ends = [lease.lease_until for lease in await self.driver.inspect.leases() if lease.id in {j.id for j in jobs}]
        assert len(ends) == len(jobs), "only a held job can lose its lease"
        await self.advance(max(ends) - now + timedelta(milliseconds=1))


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC).replace(microsecond=0)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class MemoryHarness(Harness):
    def __init__(self, calls: Calls) -> None:
        self._clock = HandClock()
        self._plain = MemoryDriver(self._clock)
        self.driver = recorded(self._plain, calls)

    async def advance(self, by: timedelta) -> None:
        self._clock.time += by

    def now(self) -> datetime:
        return self._clock.time

    async def second(self) -> Driver:
        return self.driver

    async def write_state(self, id: UUID, word: str) -> None:
        self._plain._store.jobs[id].state = word


_TABLES = r"""
select relname from pg_class
 where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
   and relname like 'x\_%' and relname <> 'x_schema'
"""


class PostgresHarness(Harness):
    """One client for many cases, each of which finds an empty store."""

    def __init__(self, url: str, calls: Calls, admin: asyncpg.Connection[Any]) -> None:
        self._url = url
        self._calls = calls
        self._admin = admin
        self._guests = contextlib.AsyncExitStack()

    async def advance(self, by: timedelta) -> None:
        await self._admin.execute("update standing.clock set time = time + $1", by)

    async def second(self) -> Driver:
        return await self.client(self._guests)

    async def write_state(self, id: UUID, word: str) -> None:
        await self._admin.execute("update public.x_jobs set state = $2 where id = $1", id, word)

    async def client(self, until: contextlib.AsyncExitStack) -> Driver:
        driver = PostgresDriver(self._url, "public")
        await driver.open("app")
        until.push_async_callback(driver.close)

        def look_again(name: str) -> None:
            # A process remembers which streams there are for about a second; here no time passes by itself.
            if name in {"claim", "next_due"}:
                driver._claimer._book._queues = frozenset()
                driver._claimer._slots.forget()

        return recorded(driver, self._calls, before=look_again)

    async def empty(self, time: datetime) -> None:
        """Removes every row and starts the store's time over at `time`. Lease numbers go on: none is used twice."""
        tables = await self._admin.fetch(_TABLES)
        await self._admin.execute("; ".join(f"delete from public.{found['relname']}" for found in tables))
        await self._admin.execute("update standing.clock set time = $1", time)

    @contextlib.asynccontextmanager
    async def one_case(self) -> AsyncGenerator[None]:
        await self.empty(datetime.now(UTC).replace(microsecond=0))
        async with self._guests:
            yield
        self._guests = contextlib.AsyncExitStack()


@contextlib.asynccontextmanager
async def memory_harness(calls: Calls) -> AsyncGenerator[MemoryHarness]:
    harness = MemoryHarness(calls)
    await harness.driver.open("app")
    yield harness
    await harness.driver.close()


@contextlib.asynccontextmanager
async def postgres_harness(url: str, calls: Calls) -> AsyncGenerator[PostgresHarness]:
    async with contextlib.AsyncExitStack() as stack:
        admin = await asyncpg.connect(url)
        stack.push_async_callback(admin.close)
        harness = PostgresHarness(url, calls, admin)
        harness.driver = await harness.client(stack)
        yield harness
