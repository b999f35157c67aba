"""The stage on which workers run as real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.scenes import Scene, scene
from tests.support.stage import JOBS
from ultijobs import App

collect_ignore = ["example"]
"""Run by a pytest of its own."""


@pytest.fixture
async def stage(pg_url: str) -> AsyncIterator[Scene]:
    """A fresh database, and this process as the one that enqueues into it."""
    async with scene(pg_url, "tests.support.stage:app") as stage, App(jobs=JOBS, driver=pg_url):
        yield stage
