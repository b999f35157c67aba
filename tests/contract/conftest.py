"""Runs every case of the contract on every driver, and fails a whole run that left a method out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.frozen import frozen_database
from tests.contract.harness import Harness, PostgresHarness, memory_harness, postgres_harness
from tests.contract.recording import Calls, contract_methods
from tests.support.servers import Server

KINDS = ("memory", "postgres")
HERE = Path(__file__).parent
CALLS = pytest.StashKey[dict[str, Calls]]()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres(request: pytest.FixtureRequest, pg: Server) -> AsyncGenerator[PostgresHarness]:
    calls = request.config.stash[CALLS]["postgres"]
    async with postgres_harness(frozen_database(pg), calls) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def postgres_case(postgres: PostgresHarness) -> AsyncGenerator[Harness]:
    async with postgres.one_case():
        yield postgres


@pytest_asyncio.fixture(loop_scope="session")
async def memory_case(request: pytest.FixtureRequest) -> AsyncGenerator[Harness]:
    async with memory_harness(request.config.stash[CALLS]["memory"]) as made:
        yield made


@pytest.fixture(params=KINDS)
def harness(request: pytest.FixtureRequest) -> Harness:
    made: Harness = request.getfixturevalue(f"{request.param}_case")
    return made


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CALLS] = {kind: set() for kind in KINDS}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # xdist's controller collects nothing; what its workers called is gathered below.
    # One loop for all, so that the Postgres client keeps its connections from case to case.
    for item in items:
        if item.path.parent == HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    picked = config.getoption("keyword") or config.getoption("markexpr")
    config.stash[_WHOLE] = not picked and {p.name for p in HERE.glob("test_*.py")} <= {item.path.name for item in items}


_WHOLE = pytest.StashKey[bool]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    told = getattr(node, "workeroutput", {})
    node.config.stash[_WHOLE] = told.get("contract_whole", False)
    for kind, calls in told.get("contract_calls", {}).items():
        node.config.stash[CALLS][kind].update(calls)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    whole = config.stash.get(_WHOLE, False)
    calls = config.stash[CALLS]
    if (output := getattr(config, "workeroutput", None)) is not None:
        output["contract_whole"] = whole
        output["contract_calls"] = {kind: sorted(names) for kind, names in calls.items()}
    elif whole and exitstatus == 0:
        missing = {kind: sorted(contract_methods() - names) for kind, names in calls.items()}
        if any(missing.values()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter = config.pluginmanager.get_plugin("terminalreporter")
            if isinstance(reporter, pytest.TerminalReporter):
                reporter.write_line(f"\nno case of tests/contract called {missing}", red=True)
