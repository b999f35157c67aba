"""An open driver, a plain connection beside it, and jobs to put in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk, ClaimedJob, Settlement
from ultijobs._queue.records import NewJob, Outcome
from ultijobs.postgres import PostgresDriver


@pytest.fixture
async def driver(pg_url: str) -> AsyncIterator[PostgresDriver]:
    driver = PostgresDriver(pg_url)
    await driver.open("worker")
    yield driver
    await driver.close()


@pytest.fixture
async def database(pg_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(pg_url)
    yield connection
    await connection.close()


@pytest.fixture
def job() -> Callable[..., NewJob]:
    def make(name: str = "send", **options: Any) -> NewJob:
        return NewJob(**{"id": new_id(), "name": name, "input": "{}", **options})

    return make


@pytest.fixture
def ask() -> Callable[..., ClaimAsk]:
    def make(limit: int = 10, **options: Any) -> ClaimAsk:
        given = {
            "worker_id": "w-1",
            "queues": {"default": limit},
            "names": ("send",),
            "lease": timedelta(seconds=30),
            **options,
        }
        return ClaimAsk(limit=limit, **given)

    return make


def settlement(claimed: ClaimedJob, outcome: Outcome = Outcome.OK, **options: Any) -> Settlement:
    given = {
        "id": claimed.id,
        "run_id": claimed.run_id,
        "lease_no": claimed.lease_no,
        "outcome": outcome,
        "attempt": claimed.attempt,
        "worker_id": "w-1",
        "queue": claimed.queue,
        "unique": claimed.unique,
        "lane": claimed.lane,
        **options,
    }
    return Settlement(**given)
