"""Events from the command line: published, listed, and seen where a run waits for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.inspection import Outcome


def waiting(seeds: Seeds, **wait: Any) -> UUID:
    """A run that waits for org.approved."""
    claim = seeds.running()
    seeds.record(
        StepWrite(
            claim.id,
            claim.run_id,
            claim.lease_no,
            "approval",
            StepKind.WAIT,
            StepStatus.WAITING,
            1,
            wake_in=timedelta(days=1),
            **{"event": "org.approved", "match": "o 1", **wait},
        )
    )
    seeds.settle(claim, Outcome.SUSPENDED, run_at=seeds.clock.now() + timedelta(days=1))
    return claim.id


def test_the_command_that_why_shows_wakes_the_run(queue: Cli, seeds: Seeds) -> None:
    job = waiting(seeds)
    why = queue("jobs", "why", str(job), "--json").data
    assert (why["waiting_on"], why["frees"]) == ("event", "ultijobs events publish org.approved --key 'o 1'")
    answer = queue("events", "publish", "org.approved", "--key", "o 1", "--json")
    assert (answer.code, answer.data["woken"]) == (0, 1)
    assert queue("jobs", "show", str(job), "--json").data["waiting_on"] != "event"
    assert (
        queue("jobs", "ls", "--where", "state:suspended", "--json").data["rows"][0]["run_at"] == "2026-03-01T12:00:00Z"
    )


def test_an_event_that_nobody_waits_for_says_so_and_is_listed(queue: Cli, seeds: Seeds) -> None:
    waiting(seeds)
    answer = queue("events", "publish", "org.approved", "--key", "o-2", "--payload", '{"by": "ann"}', "--as", "ann@ops")
    assert answer.code == 0
    assert "no run waits for it now" in answer.out
    [row] = queue("events", "ls", "--json").data["rows"]
    assert (row["name"], row["key"], row["published_by"]) == ("org.approved", "o-2", "ann@ops")
    assert (row["published_at"], row["expires_at"]) == ("2026-03-01T12:00:00Z", "2026-03-08T12:00:00Z")
    assert "ann@ops" in queue("events", "ls", COLUMNS="120").out


def test_a_publish_is_written_into_the_activity_table(queue: Cli, seeds: Seeds) -> None:
    queue("events", "publish", "paid", "--key", "o-1", "--payload", '"secret"', "--reason", "by phone", "--as", "ann")
    answer = queue("activity", "--json")
    [row] = answer.data["rows"]
    assert (row["actor"], row["action"], row["target"], row["reason"]) == ("ann", "publish", "event:paid", "by phone")
    assert (row["done"], row["equivalent"]) == (1, "ultijobs events publish paid --key o-1")
    assert row["finished_at"] is not None
    assert "secret" not in answer.out


def test_events_are_listed_by_name_key_and_page(queue: Cli, seeds: Seeds) -> None:
    for number in range(3):
        queue("events", "publish", "paid", "--key", f"o-{number}")
        seeds.clock.move(seconds=1)
    queue("events", "publish", "refunded")
    assert [row["name"] for row in queue("events", "--json").data["rows"]] == ["refunded", "paid", "paid", "paid"]
    page = queue("events", "ls", "--name", "paid", "--limit", "2", "--json").data
    assert [row["key"] for row in page["rows"]] == ["o-2", "o-1"]
    rest = queue("events", "ls", "--name", "paid", "--limit", "2", "--after", page["next"], "--json").data
    assert ([row["key"] for row in rest["rows"]], rest["next"]) == (["o-0"], None)
    assert len(queue("events", "ls", "--name", "paid", "--key", "o-1", "--json").data["rows"]) == 1


def test_a_payload_comes_from_a_file_or_from_stdin(queue: Cli, seeds: Seeds, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"n": 1}')
    assert queue("events", "publish", "paid", "--payload", f"@{file}").code == 0
    assert queue("events", "publish", "paid", "--payload", "-", input='{"n": 2}').code == 0
    stored = [event.payload for event in seeds.driver._store.events.values()]
    assert stored == ['{"n":1}', '{"n":2}']


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["events", "publish", "paid", "--payload", "{"], 2),
        (["events", "publish", "paid", "--payload", "@nowhere.json"], 2),
        (["events", "publish", "paid", "--ttl", "soon"], 2),
        (["events", "publish", "a b"], 2),
        (["events", "publish", "paid", "--key", ""], 2),
        (["events", "publish", "paid", "--payload", "NaN"], 1),
        (["events", "ls", "--key", "o-1"], 2),
        (["events", "ls", "--after", "zebra"], 2),
        (["events", "publish"], 2),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_nothing_is_published(
    queue: Cli, seeds: Seeds, words: list[str], code: int
) -> None:
    answer = queue(*words, "--json")
    assert answer.code == code, answer.json
    assert len(answer.json["findings"]) == 1
    assert asyncio.run(seeds.driver.events.page()).rows == []
    assert queue("activity", "--json").data["rows"] == []


def test_a_waiting_step_is_shown_with_its_event_and_its_deadline(queue: Cli, seeds: Seeds) -> None:
    job = waiting(seeds)
    shown = queue("jobs", "show", str(job), COLUMNS="140").out
    assert "waiting" in shown
    assert "org.approved o 1" in shown
    assert "until 2026-03-02 12:00:00" in shown
    [step] = queue("jobs", "show", str(job), "--json").data["steps"]
    assert (step["event"], step["match"], step["wake_at"]) == ("org.approved", "o 1", "2026-03-02T12:00:00Z")
