"""One caller per library, an application on the same database, and what is stored there."""

from __future__ import annotations

import asyncpg
import pytest
from pydantic import BaseModel

from tests.integration.transactions.callers import CALLERS
from ultijobs import App, job


class Mail(BaseModel):
    to: str


@job(Mail, idempotency_key=lambda i: i.to, tenant="none")
async def send(input: Mail): ...


@job(Mail, idempotency_key=lambda i: i.to, tenant="none", unique="not-running")
async def refresh(input: Mail): ...


@job(Mail, idempotency_key=lambda i: i.to, tenant="none", unique="rerun")
async def sync(input: Mail): ...


@pytest.fixture
async def app(pg_url):
    async with App(jobs=[send, refresh, sync], driver=pg_url) as app:
        yield app


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.__name__)
async def caller(request, pg_url):
    async with request.param.on(pg_url) as caller:
        yield caller


@pytest.fixture
async def stored(pg_url):
    """The keys that another connection sees."""
    connection = await asyncpg.connect(pg_url)

    async def keys() -> list[str]:
        return [row[0] for row in await connection.fetch("select idempotency_key from x_jobs_all order by 1")]

    yield keys
    await connection.close()
