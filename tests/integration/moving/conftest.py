"""Two databases, and a queue in the first that holds jobs of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.support.servers import Server
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk, ClaimedJob, Settlement
from ultijobs._queue.events import NewEvent
from ultijobs._queue.records import NewJob, Outcome, UniqueMode
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.postgres import PostgresDriver

QUEUE = "billing"
LEASE = timedelta(minutes=1)


@pytest.fixture
def there_url(pg: Server) -> Iterator[str]:
    url = pg.create()
    yield url
    pg.drop(url)


@dataclass
class Here:
    """The source, through its driver."""

    url: str
    driver: PostgresDriver
    admin: asyncpg.Connection[Any]

    async def put(self, **more: Any) -> UUID:
        job = NewJob(**{"id": new_id(), "name": "charge", "input": '{"n": 1}', "queue": QUEUE, **more})
        (answer,) = await self.driver.enqueue([job])
        return answer.id

    async def take(self, job: UUID) -> ClaimedJob:
        (claimed,) = await self.driver.claim(ClaimAsk("w-1", {QUEUE: 1}, ("charge",), 1, LEASE))
        assert claimed.id == job
        return claimed

    async def settle(self, claimed: ClaimedJob, outcome: Outcome, **more: Any) -> None:
        await self.driver.settle(
            [Settlement(claimed.id, claimed.run_id, claimed.lease_no, outcome, claimed.attempt, "w-1", QUEUE, **more)]
        )

    async def step(self, claimed: ClaimedJob, name: str, **more: Any) -> None:
        told = {"kind": StepKind.RUN, "status": StepStatus.COMPLETED, "position": 1, **more}
        await self.driver.record_steps([StepWrite(claimed.id, claimed.run_id, claimed.lease_no, name, **told)])

    async def full(self) -> list[UUID]:
        """One job of each kind that moves: fresh, delayed, retried, asleep, waiting for an event that came."""
        retried = await self.put(idempotency_key="retried", tenant_id="acme", traceparent="00-a-b-01", max_attempts=5)
        claimed = await self.take(retried)
        await self.step(claimed, "load", output='{"x": 1.0}')
        await self.settle(claimed, Outcome.RETRIED, delay=timedelta(hours=1), error_code="E_BAD", error="no")
        asleep = await self.put(idempotency_key="asleep")
        claimed = await self.take(asleep)
        await self.step(claimed, "nap", kind=StepKind.SLEEP, status=StepStatus.SLEEPING, wake_in=timedelta(days=3))
        now = await self.driver.inspect.now()
        await self.settle(claimed, Outcome.SUSPENDED, run_at=now + timedelta(days=3))
        waiting = await self.put(idempotency_key="waiting")
        claimed = await self.take(waiting)
        await self.step(
            claimed,
            "paid",
            kind=StepKind.WAIT,
            status=StepStatus.WAITING,
            event="paid",
            match="i-1",
            wake_in=timedelta(days=7),
        )
        await self.settle(claimed, Outcome.SUSPENDED, run_at=now + timedelta(days=7))
        await self.driver.events.publish([NewEvent(new_id(), "paid", '{"by": "ann"}', key="i-1")])
        delayed = await self.put(idempotency_key="delayed", delay=timedelta(hours=2), priority=3)
        fresh = await self.put(idempotency_key="fresh", enqueued_by='{"kind": "user", "id": "u-3"}')
        return [retried, asleep, waiting, delayed, fresh]

    async def family(self) -> list[UUID]:
        """A job that will run again, and the twin that waits for its end."""
        rerun = {"idempotency_key": "again", "unique": UniqueMode.RERUN}
        first = await self.put(**rerun)
        claimed = await self.take(first)
        twin = await self.put(**rerun)
        await self.settle(claimed, Outcome.RETRIED, delay=timedelta(hours=1))
        return [first, twin]


@pytest.fixture
async def here(pg_url: str) -> AsyncIterator[Here]:
    driver = PostgresDriver(pg_url)
    await driver.open("app")
    admin = await asyncpg.connect(pg_url)
    yield Here(pg_url, driver, admin)
    await admin.close()
    await driver.close()


@pytest.fixture
async def there(there_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    admin = await asyncpg.connect(there_url)
    yield admin
    await admin.close()
