"""`tasks`: what is scheduled, what is coming, and a task run by hand."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs._queue.schedule import Arming
from ultijobs._queue.telling import CatalogEntry

APP = """
from datetime import datetime
from pydantic import BaseModel
from ultijobs import App, job, task
from ultijobs.memory import MemoryDriver

class Digest(BaseModel):
    day: str

@job(Digest, idempotency_key=lambda i: i.day, tenant="none", queue="mail")
async def send_digest(input: Digest) -> None: ...

@task(cron="30 2 * * *", tz="Europe/Berlin", catch_up="run-once")
def nightly(occurrence: datetime):
    return [send_digest.request(Digest(day=day)) for day in ("a", "b")]

@task(cron="@hourly", tz="UTC")
def broken(occurrence: datetime):
    raise RuntimeError("no data")

driver = MemoryDriver()
app = App(jobs=[send_digest], tasks=[nightly, broken], driver=driver, transactions="required")
"""


@pytest.fixture
def shop(tmp_path: Path, cli: Cli) -> Iterator[Cli]:
    """The command line in a folder with an application of its own."""
    (tmp_path / "nightshop.py").write_text(APP)
    yield lambda *words: cli(*words, "--app", "nightshop:app")
    sys.modules.pop("nightshop", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def declare(seeds: Seeds, name: str = "nightly", cron: str = "30 2 * * *", tz: str = "Europe/Berlin") -> None:
    declaration = {"cron": cron, "tz": tz, "catch_up": "skip", "max_catch_up": 10}
    asyncio.run(seeds.driver.publish_catalog([CatalogEntry("task", name, None, declaration)]))


async def arm(seeds: Seeds, name: str, cron: str, tz: str, error: str | None = None) -> None:
    term = (await seeds.driver.schedule.lead("node-1", lease=timedelta(seconds=30))).term
    await seeds.driver.schedule.arm("node-1", term, [Arming(name, cron, tz)])
    if error is not None:
        await seeds.driver.schedule.fault("node-1", term, name, error)


def test_the_list_says_when_each_task_fires_next_in_its_own_offset(queue: Cli, seeds: Seeds):
    declare(seeds)
    declare(seeds, "hourly", "0 * * * *", "UTC")
    answer = queue("tasks", "--json")
    assert answer.code == 0
    hourly, nightly = answer.data["rows"]
    assert (hourly["name"], hourly["next"]) == ("hourly", "2026-03-01T13:00:00+00:00")
    assert (nightly["name"], nightly["next"]) == ("nightly", "2026-03-02T02:30:00+01:00")
    assert (nightly["cron"], nightly["tz"], nightly["catch_up"]) == ("30 2 * * *", "Europe/Berlin", "skip")
    assert (answer.data["next"], answer.data["leader"]) == (None, None)
    assert "no scheduler leads" in queue("tasks", "ls").out


def test_a_late_task_is_shown_with_its_error(queue: Cli, seeds: Seeds):
    declare(seeds, "minutely", "* * * * *", "UTC")
    asyncio.run(arm(seeds, "minutely", "* * * * *", "UTC", "ValueError: \x1b[31mno"))
    seeds.clock.move(minutes=10)
    (row,) = queue("tasks", "ls", "--json").data["rows"]
    assert (row["late_since"], row["last_error"]) == ("2026-03-01T12:01:00Z", "ValueError: \x1b[31mno")
    shown = queue("tasks", "show", "minutely").out
    assert "\x1b" not in shown
    assert "since 2026-03-01 12:01" in shown
    assert queue("tasks", "ls", "--json").data["leader"] == {
        "holder": "node-1",
        "term": 1,
        "lease_until": "2026-03-01T12:00:30Z",
        "leads": False,
    }


def test_upcoming_instants_are_in_the_zone_s_own_offset_over_a_clock_change(queue: Cli, seeds: Seeds):
    declare(seeds)
    seeds.clock.move(days=26)
    answer = queue("tasks", "show", "nightly", "--count", "5", "--json")
    assert [each["at"] for each in answer.data["upcoming"]] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
        "2026-04-01T02:30:00+02:00",
    ]
    assert answer.data["name"] == "nightly"


@pytest.mark.parametrize("count", ["0", "-1", "five"])
def test_a_count_that_is_none_is_refused(queue: Cli, count: str):
    answer = queue("tasks", "show", "nightly", "--count", count, "--json")
    assert (answer.code, answer.codes) == (2, ["X_CLI_BAD_FLAG"])


@pytest.mark.parametrize("command", ["show", "preview"])
def test_an_unknown_name_is_not_found_and_the_nearest_is_named(queue: Cli, seeds: Seeds, command: str):
    declare(seeds)
    answer = queue("tasks", command, "nightli", "--json")
    assert (answer.code, answer.codes) == (3, ["X_DECLARATION_UNKNOWN"])
    assert answer.json["findings"][0]["fix"] == "ultijobs tasks show nightly"


def test_a_preview_shows_a_day_on_which_the_clocks_change(queue: Cli, seeds: Seeds):
    declare(seeds)
    answer = queue("tasks", "preview", "nightly", "--around", "2026-10-25", "--json")
    assert [(row["at"], row["utc"], row["shift_ms"]) for row in answer.data["rows"]] == [
        ("2026-10-24T02:30:00+02:00", "2026-10-24T00:30:00Z", 0),
        ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00Z", 0),
        ("2026-10-26T02:30:00+01:00", "2026-10-26T01:30:00Z", -3_600_000),
    ]
    assert "back 1h" in queue("tasks", "preview", "nightly", "--around", "2026-10-25").out
    refused = queue("tasks", "preview", "nightly", "--around", "easter", "--json")
    assert (refused.code, refused.json["findings"][0]["at"]) == (2, "--around")


def test_with_an_application_its_own_declarations_are_told(shop: Cli):
    answer = shop("tasks", "ls", "--json")
    assert [(row["name"], row["catch_up"], row["watermark"]) for row in answer.data["rows"]] == [
        ("broken", "skip", None),
        ("nightly", "run-once", None),
    ]


def test_an_application_that_cannot_be_imported_is_a_finding(queue: Cli, seeds: Seeds, tmp_path: Path):
    declare(seeds)
    (tmp_path / "brokenshop.py").write_text("import nothing_of_the_kind")
    answer = queue("tasks", "ls", "--app", "brokenshop:app", "--json")
    assert (answer.code, answer.codes) == (1, ["X_APP_UNUSABLE"])
    assert [row["name"] for row in answer.data["rows"]] == ["nightly"]
    sys.path.remove(str(tmp_path))


def test_a_task_is_run_now_and_its_jobs_dedupe_by_their_plain_keys(shop: Cli):
    answer = shop("tasks", "run", "nightly", "--yes", "--reason", "after the outage", "--json")
    assert answer.code == 0
    assert (answer.data["name"], answer.data["matched"]) == ("nightly", 2)
    assert [(row["deduped"], row["state"]) for row in answer.data["rows"]] == [(False, "ready")] * 2
    again = shop("tasks", "run", "nightly", "--json")
    assert [row["deduped"] for row in again.data["rows"]] == [True, True]
    told = shop("activity", "--json").data["rows"]
    assert [(row["action"], row["target"], row["done"]) for row in told] == [
        ("run-task", "task:nightly", 0),
        ("run-task", "task:nightly", 2),
    ]
    assert told[1]["reason"] == "after the outage"


def test_a_dry_run_asks_and_stores_nothing(shop: Cli):
    answer = shop("tasks", "run", "nightly", "--dry-run", "--json")
    assert answer.data["rows"] == [{"name": "send_digest", "queue": "mail"}] * 2
    assert shop("jobs", "ls", "--json").data["rows"] == []
    assert shop("activity", "--json").data["rows"] == []


def test_a_task_to_run_must_be_declared_by_the_application(shop: Cli, queue: Cli):
    answer = shop("tasks", "run", "nightli", "--json")
    assert (answer.code, answer.codes) == (3, ["X_DECLARATION_UNKNOWN"])
    assert answer.json["findings"][0]["fix"] == "ultijobs tasks run nightly"
    without = queue("tasks", "run", "nightly", "--json")
    assert (without.code, without.codes) == (2, ["X_CLI_BAD_FLAG"])


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_a_task_whose_function_raises_is_named_with_the_line_that_did(shop: Cli, how: str):
    answer = shop("tasks", "run", "broken", how, "--json")
    assert (answer.code, answer.codes) == (1, ["X_APP_UNUSABLE"])
    cause = answer.json["findings"][0]["cause"]
    assert cause.startswith("task broken raised RuntimeError: no data (")
    assert re.search(r"\.py:\d+\)$", cause)
