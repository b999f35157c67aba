"""What a worker costs the database while there is nothing to do."""

from typing import Any

import pytest

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import JOBS
from ultijobs import App
from ultijobs.postgres.attention import LOOK
from ultijobs.postgres.place import Place

LOOKS = 6
BESIDES = 5
"""Statements that come by the clock and not by the poll: heartbeats, chores, the listener's probe."""


async def test_an_idle_worker_sends_two_statements_a_poll(stage: Scene, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    connect = Place.connect

    def hear(logged: Any) -> None:
        said.append(logged.query)

    async def watched(self: Place, **options: Any) -> Any:
        connection = await connect(self, **options)
        connection.add_query_logger(hear)
        return connection

    monkeypatch.setattr(Place, "connect", watched)

    def looks() -> int:
        marks = LOOK.partition("{")[0]
        return sum(statement.startswith(marks) for statement in said)

    async with App(jobs=JOBS, driver=stage.url) as app, working(app, poll="1s", lease="30s"):
        await eventually(lambda: looks() > 1)
        said.clear()
        await eventually(lambda: looks() >= LOOKS, within=20)
        assert len(said) <= 2 * looks() + BESIDES, said
