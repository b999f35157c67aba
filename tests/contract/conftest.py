"""Runs every case of the contract on every driver, and notes which methods the cases call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.frozen import frozen_database
from tests.contract.harness import Harness, PostgresHarness, memory_harness, postgres_harness
from tests.support import whole_runs
from tests.support.servers import Server, on_system_server

KINDS = ("postgres",) if on_system_server() else ("memory", "postgres")
HERE = Path(__file__).parent


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres(request: pytest.FixtureRequest, pg: Server) -> AsyncGenerator[PostgresHarness]:
    calls = whole_runs.note(request.config, whole_runs.CALLS + "postgres")
    async with postgres_harness(frozen_database(pg), calls) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def postgres_case(postgres: PostgresHarness) -> AsyncGenerator[Harness]:
    async with postgres.one_case():
        yield postgres


@pytest_asyncio.fixture(loop_scope="session")
async def memory_case(request: pytest.FixtureRequest) -> AsyncGenerator[Harness]:
    async with memory_harness(whole_runs.note(request.config, whole_runs.CALLS + "memory")) as made:
        yield made


@pytest.fixture(params=KINDS)
def harness(request: pytest.FixtureRequest) -> Harness:
    made: Harness = request.getfixturevalue(f"{request.param}_case")
    return made


def pytest_configure(config: pytest.Config) -> None:
    for kind in KINDS:
        whole_runs.note(config, whole_runs.CALLS + kind)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One loop for all, so that the Postgres client keeps its connections from case to case.
    for item in items:
        if item.path.parent == HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
