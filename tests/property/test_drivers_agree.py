"""The memory driver is the model of the Postgres driver: whatever is done to both, they answer the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.frozen import frozen_database
from tests.contract.harness import MemoryHarness, postgres_harness
from tests.property.machine import Agreement
from tests.property.sides import Side
from tests.support.servers import Server

BOUNDED = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


def test_the_drivers_agree(pg: Server, runner: asyncio.Runner) -> None:
    making = postgres_harness(frozen_database(pg), set())
    real = runner.run(making.__aenter__())

    def machine() -> Agreement:
        model = MemoryHarness(set())
        runner.run(real.empty(model.now()))
        made = Agreement()
        made.run, made.model, made.real = runner.run, Side(model), Side(real)
        return made

    try:
        run_state_machine_as_test(machine, settings=BOUNDED)
    finally:
        runner.run(making.__aexit__(None, None, None))
