"""The rows that lists print, as they are documented."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from docs_tools.json_shapes import DATA, ROWS, fields, nested
from tests.cli.conftest import Cli, Seeds
from tests.cli.test_help import COMMANDS
from tests.contract.test_workers import beat
from ultijobs._queue.records import Outcome


@pytest.fixture
def busy(queue: Cli, seeds: Seeds) -> Cli:
    """A queue that has something to show in every list."""
    seeds.job()
    seeds.running("load")
    seeds.dead("ship", error="no good")
    seeds.settled(Outcome.RETRIED, "mail", delay=timedelta(hours=1))
    asyncio.run(seeds.driver.beat(beat("w-1")))
    queue("queues", "pause", "default")
    queue("events", "publish", "paid")
    return queue


@pytest.mark.parametrize(
    "command", ["jobs ls", "queues ls", "workers ls", "leases", "causes", "activity", "events ls", "doctor", "prune"]
)
def test_every_row_has_the_documented_keys_and_no_other(busy: Cli, command: str) -> None:
    whole = busy(*command.split(), "--json")
    lines = busy(*command.split(), "--json-lines").out.splitlines()
    rows = whole.data["rows"]
    assert rows
    assert len(lines) == len(rows)
    for row in (*rows, *map(json.loads, lines)):
        assert list(row) == list(fields(ROWS[command]))


def test_an_object_has_the_documented_keys_and_no_other(busy: Cli) -> None:
    data = busy("stats", "--json").data
    inside = [f"outbox.{key}" for key in data["outbox"]]
    assert [*data, *inside] == list(nested(DATA["stats"]))
    assert busy("stats", "--queue", "default", "--json").data["outbox"] is None


def test_what_is_documented_is_a_command() -> None:
    for command in (*ROWS, *DATA):
        assert tuple(word for word in command.split() if not word.startswith("--")) in COMMANDS


def test_every_list_can_be_watched() -> None:
    for command in set(ROWS) - {"doctor", "prune"}:
        node = COMMANDS[tuple(word for word in command.split() if not word.startswith("--"))]
        assert "--watch" in {option for param in node.params for option in param.opts}, command
