"""An application whose queue lives in another database than its own tables, and a queue that can be made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from tests.integration.transactions.callers import CALLERS
from ultijobs import App, Relay, Step, job
from ultijobs._connect import driver_for
from ultijobs.postgres import PostgresDriver

KEYS = "select idempotency_key from x_jobs_all order by created_at, id"


class Mail(BaseModel):
    to: str


@job(Mail, idempotency_key=lambda i: i.to, tenant="none")
async def send(input: Mail): ...


@job(Mail, idempotency_key=lambda i: f"wait:{i.to}", tenant="none")
async def wait(input: Mail, step: Step):
    await step.wait_for_event("paid", "paid", match=input.to, timeout="1h", required=True)


class Faulty(PostgresDriver):
    """The queue's driver with `before` and `after` around each publish; what they raise is the queue's answer."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before: Callable[[list[str]], Any] = lambda _: None
        self.after: Callable[[list[str]], Any] = lambda _: None
        self.events_before: Callable[[list[str]], Any] = lambda _: None
        self.events_after: Callable[[list[str]], Any] = lambda _: None

    @property
    def events(self) -> Any:
        return FaultyEvents(self, super().events)

    async def enqueue(self, jobs: Any, **options: Any) -> Any:
        keys = [job.idempotency_key for job in jobs]
        await told(self.before, keys)
        answers = await super().enqueue(jobs, **options)
        await told(self.after, keys)
        return answers


class FaultyEvents:
    def __init__(self, driver: Faulty, events: Any) -> None:
        self._driver = driver
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    async def publish(self, events: Any, **options: Any) -> Any:
        keys = [event.key for event in events]
        await told(self._driver.events_before, keys)
        answer = await self._events.publish(events, **options)
        await told(self._driver.events_after, keys)
        return answer


async def told(hook: Callable[[list[str]], Any], keys: list[str]) -> None:
    answer = hook(keys)
    if asyncio.iscoroutine(answer):
        await answer


@pytest.fixture
def app_url(pg):
    """The application's own database."""
    url = pg.create()
    yield url
    pg.drop(url)


@pytest.fixture
def queue(pg_url) -> Faulty:
    return Faulty(pg_url)


@pytest.fixture
async def app(queue, app_url):
    async with App(jobs=[send, wait], driver=queue, outbox=app_url) as app:
        yield app


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.__name__)
async def caller(request, app_url):
    async with request.param.on(app_url) as caller:
        yield caller


@pytest.fixture
async def connection(app_url):
    connection = await asyncpg.connect(app_url)
    yield connection
    await connection.close(timeout=5)


@pytest.fixture
async def outbox(app_url):
    driver = driver_for(app_url)
    await driver.open()
    yield driver.outbox
    await driver.close()


@pytest.fixture
async def relaying(app):
    """Starts relays that are stopped at the end, and must have ended well."""
    running: list[tuple[Relay, asyncio.Task[None]]] = []

    def start(**options: Any) -> Relay:
        relay = Relay(app, **{"interval": "20ms", "relay_id": f"r-{len(running)}", **options})
        running.append((relay, asyncio.create_task(relay.work(relay._stop))))
        return relay

    yield start
    for relay, task in running:
        relay.stop()
        await asyncio.wait_for(task, 10)


@pytest.fixture
async def jobs(pg_url):
    """The keys of the jobs in the queue, in the order in which they came there."""
    connection = await asyncpg.connect(pg_url)

    async def keys() -> list[str]:
        return [row[0] for row in await connection.fetch(KEYS)]

    yield keys
    await connection.close()
