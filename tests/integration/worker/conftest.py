"""Workers in the test's own process, on a database of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.scenes import Scene, scene
from tests.support.stage import JOBS
from ultijobs import App, Worker

SHORT = {"lease": "3s", "poll": "0.2s", "grace": "5s", "concurrency": 4, "name": "w1"}


@pytest.fixture
async def stage(pg_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("FX_URL", pg_url)
    async with scene(pg_url, "tests.support.stage:app") as stage, App(jobs=JOBS, driver=pg_url) as app:
        stage.here = app
        yield stage


@asynccontextmanager
async def working(app: App[Any], **options: Any) -> AsyncIterator[Worker]:
    """A worker that runs for the block, and drains without any grace at its end."""
    worker = Worker(app, **{**SHORT, **options})
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 15)
