"""`backfill`: dry runs that change nothing, passes asked for, exit codes that a pipeline can trust."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.cli.conftest import Answer, Cli, Seeds
from tests.contract.test_backfills import mark, start
from tests.support.servers import blocking
from ultijobs import Worker
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.records import Outcome
from ultijobs._queue.telling import CatalogEntry
from ultijobs.inspection import Inspector

APP = """
from ultijobs import App, BatchSource, RetryPolicy, backfill
from ultijobs.memory import MemoryDriver

rows = list(range(25))

async def pages(cursor):
    found = [row for row in rows if row > (-1 if cursor is None else cursor)][:10]
    return found, found[-1] if len(found) == 10 else None

async def handle(rows, ctx): ...

async def broken(rows, ctx):
    raise OSError("disk")

once = RetryPolicy(attempts=1)
source = BatchSource.pages(pages)
fill = backfill(source, tenant="none", rate=1000, batch=10, name="fill", count=lambda: len(rows) - 25)(handle)
counted = backfill(source, tenant="none", batch=10, rate=5, name="counted", count=lambda: 95)(handle)
uncounted = backfill(source, tenant="none", name="uncounted", count=lambda: 1 / 0)(handle)
staged = backfill(source, tenant="none", name="staged", environments=["staging"])(handle)
bad = backfill(source, tenant="none", rate=1000, name="bad", retry=once)(broken)
driver = MemoryDriver()
app = App(jobs=[HANDLES], driver=driver)
"""


@pytest.fixture
def shop(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The command line on an application that declares the backfills that it is asked for."""
    monkeypatch.delenv("ULTIJOBS_ENV", raising=False)

    def declare(*names: str) -> Cli:
        (tmp_path / "fillshop.py").write_text(APP.replace("HANDLES", ", ".join(names)))
        return lambda *words, **env: cli("backfill", *words, "--json", "--app", "fillshop:app", **env)

    yield declare
    sys.modules.pop("fillshop", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def work() -> None:
    """Runs what is due in the application that the command line has loaded."""
    asyncio.run(Worker(sys.modules["fillshop"].app, poll="0.1s").run_until_idle())


def only(answer: Answer) -> dict[str, Any]:
    (row,) = answer.data["rows"]
    assert row["finding"] in [None, *answer.json["findings"]]
    found: dict[str, Any] = row
    return found


# -- from never run to repeated ------------------------------------------------------------------------
def test_a_backfill_goes_from_pending_to_completed_and_each_exit_code_says_so(shop: Any):
    run = shop("fill")
    answer = run("--pending")
    assert (answer.code, answer.codes, answer.data["pending"]) == (1, ["X_BACKFILL_PENDING"], ["fill"])
    assert (answer.data["declared"], answer.data["orphaned"]) == (1, [])
    assert answer.json["findings"][0]["fix"] == "ultijobs backfill fill --write"

    answer = run("fill")
    assert (answer.code, only(answer)["action"], only(answer)["state"]) == (0, "planned", "pending")
    assert run("--list").data["rows"] == []
    assert run("fill").data == answer.data

    answer = run("fill", "--write")
    assert (answer.code, only(answer)["action"], only(answer)["finding"]) == (0, "enqueued", None)
    job = only(answer)["job_id"]
    for words in (("fill", "--write"), ("fill",), ("fill", "--write", "--force")):
        answer = run(*words)
        assert (answer.code, answer.codes, only(answer)["action"]) == (1, ["X_BACKFILL_RUNNING"], "deduped")
        assert (only(answer)["job_id"], only(answer)["state"]) == (job, "running")
        assert answer.json["findings"][0]["fix"] == f"ultijobs jobs show {job}"
    assert run("--pending").code == 0

    work()
    answer = run("--pending")
    assert (answer.code, answer.data["rows"][0]["state"], answer.data["rows"][0]["rows"]) == (0, "completed", 25)
    for words in (("fill", "--write"), ("fill",)):
        answer = run(*words)
        assert (answer.code, answer.codes, only(answer)["action"]) == (1, ["X_BACKFILL_APPLIED"], "blocked")
        assert answer.json["findings"][0]["fix"] == "ultijobs backfill fill --write --force"
    assert run("--all", "--write").data["rows"] == []

    before = run("--list").data["rows"]
    assert only_job(run("fill", "--write", "--force")) != job
    work()
    after = run("--list").data["rows"]
    assert len(after) == 2
    assert after[1] == before[0]
    assert after[0]["forced"]


def only_job(answer: Answer) -> str:
    assert answer.code == 0
    return str(only(answer)["job_id"])


def test_what_a_pass_would_touch_is_counted_by_the_application(shop: Any):
    run = shop("counted", "uncounted")
    row = only(run("counted"))
    assert (row["remaining"], row["batches"], row["takes_ms"]) == (95, 10, 1_800)
    assert only(run("uncounted"))["remaining"] is None


def test_a_failed_pass_is_pending_again_and_says_how_to_go_on(shop: Any):
    run = shop("bad")
    job = only_job(run("bad", "--write"))
    work()
    answer = run("--pending")
    assert (answer.code, answer.data["rows"][0]["state"]) == (1, "failed")
    finding = answer.json["findings"][0]
    assert "OSError: disk" in finding["cause"]
    assert finding["fix"] == f"ultijobs jobs retry {job}"
    answer = run("--all", "--write")
    assert (answer.code, only(answer)["action"]) == (0, "enqueued")


def test_another_environment_is_excluded_and_all_never_asks_for_it(shop: Any):
    run = shop("fill", "staged")
    answer = run("--all", "--force", "--write", ULTIJOBS_ENV="production")
    assert [row["name"] for row in answer.data["rows"]] == ["fill"]
    for environment in ("production", ""):
        answer = run("staged", "--write", "--force", ULTIJOBS_ENV=environment)
        assert (answer.code, answer.codes, only(answer)["action"]) == (1, ["X_BACKFILL_ENVIRONMENT"], "blocked")
        assert only(answer)["state"] == "excluded"
    answer = run("staged", "--write", ULTIJOBS_ENV="staging")
    assert (answer.code, only(answer)["action"]) == (0, "enqueued")
    assert answer.data["environment"] == "staging"


def test_one_that_is_blocked_does_not_stop_the_others(shop: Any):
    run = shop("fill", "counted")
    only_job(run("counted", "--write"))
    answer = run("--all", "--force", "--write")
    assert answer.code == 1
    assert {row["name"]: row["action"] for row in answer.data["rows"]} == {"fill": "enqueued", "counted": "deduped"}


def test_a_pass_that_was_asked_for_leaves_a_line_in_the_activity_table(shop: Any):
    run = shop("fill")
    only_job(run("fill", "--write", "--reason", "after the import", "--as", "ada"))
    run("fill", "--write")
    (line,) = asyncio.run(Inspector(sys.modules["fillshop"].driver).activity())
    assert (line.action, line.target, line.actor, line.source) == ("start-backfill", "backfill:fill", "ada", "cli")
    assert (line.reason, line.done, line.refused) == ("after the import", 1, 0)
    assert line.equivalent == "ultijobs backfill fill --write --reason 'after the import'"


# -- without the application ---------------------------------------------------------------------------
def entry(name: str, *, environment: str | None = None, **fields: Any) -> CatalogEntry:
    said = {"tenant": "acme", "batch": 10, "rate": 5.0, "retry": {"attempts": 7}, "counts": True, **fields}
    return CatalogEntry("backfill", name, "bulk", said, code_version="v9", environment=environment)


def test_a_pass_is_asked_for_without_the_application_as_it_was_declared(queue: Cli, seeds: Seeds):
    asyncio.run(seeds.driver.publish_catalog([entry("fill")]))
    answer = queue("backfill", "fill", "--write", "--json")
    assert (answer.code, only(answer)["remaining"]) == (0, None)
    (job,) = queue("jobs", "ls", "--json").data["rows"]
    assert (job["queue"], job["tenant_id"], job["max_attempts"], job["code_version"]) == ("bulk", "acme", 7, "v9")
    assert "give --app" in queue("backfill", "fill").err


def test_the_environment_of_whoever_declared_it_decides(queue: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ULTIJOBS_ENV", "laptop")
    entries = [entry("here", environment="production", environments=["production"])]
    entries.append(entry("there", environment="production", environments=["laptop"]))
    asyncio.run(seeds.driver.publish_catalog(entries))
    answer = queue("backfill", "--pending", "--json")
    assert {row["name"]: row["state"] for row in answer.data["rows"]} == {"here": "pending", "there": "excluded"}
    assert (answer.data["environment"], answer.data["pending"]) == ("production", ["here"])


def test_an_unknown_name_is_not_found_and_the_nearest_one_is_named(queue: Cli, seeds: Seeds):
    asyncio.run(seeds.driver.publish_catalog([entry("fill_region")]))
    answer = queue("backfill", "fil_region", "--json")
    assert (answer.code, answer.codes) == (3, ["X_BACKFILL_UNKNOWN"])
    assert answer.json["findings"][0]["fix"] == "ultijobs backfill fill_region"


def begun(seeds: Seeds, name: str = "fill") -> ClaimedJob:
    claim = seeds.running(name, idempotency_key=name)
    asyncio.run(seeds.driver.backfills.begin(start(claim)))
    asyncio.run(seeds.driver.backfills.mark(mark(claim)))
    return claim


def test_the_ledger_lists_passes_as_they_are_and_can_be_narrowed(queue: Cli, seeds: Seeds):
    claim = begun(seeds)
    (row,) = queue("backfill", "--list", "--json").data["rows"]
    assert (row["status"], row["rows"], row["cursor"], row["duration_ms"]) == ("running", 10, {"id": 7}, None)
    asyncio.run(seeds.driver.cancel([claim.id]))
    assert queue("backfill", "--list", "--json").data["rows"][0]["status"] == "cancelled"
    answer = queue("backfill", "--pending", "--json")
    assert (answer.code, answer.data["orphaned"]) == (0, ["fill"])
    begun(seeds, "other")
    assert len(queue("backfill", "--list", "--json").data["rows"]) == 2
    assert [r["name"] for r in queue("backfill", "fill", "--list", "--json").data["rows"]] == ["fill"]
    assert [r["name"] for r in queue("backfill", "--list", "--status", "running", "--json").data["rows"]] == ["other"]
    assert queue("backfill", "--list", "--limit", "1", "--json").data["rows"][0]["name"] == "other"


def test_a_cancelled_pass_alarms_and_all_asks_for_it_again(queue: Cli, seeds: Seeds):
    asyncio.run(seeds.driver.publish_catalog([entry("fill")]))
    claim = begun(seeds)
    asyncio.run(seeds.driver.cancel([claim.id]))
    answer = queue("backfill", "--pending", "--json")
    assert (answer.code, answer.data["rows"][0]["state"], answer.data["pending"]) == (1, "cancelled", ["fill"])
    answer = queue("backfill", "--all", "--write", "--json")
    assert (answer.code, only(answer)["action"]) == (0, "enqueued")


def test_a_job_that_is_a_pass_shows_its_line_of_the_ledger(queue: Cli, seeds: Seeds):
    claim = begun(seeds)
    seeds.settle(claim, Outcome.DEAD)
    shown = queue("jobs", "show", str(claim.id), "--json").data
    assert (shown["backfill"]["status"], shown["backfill"]["rows"]) == ("failed", 10)
    assert UUID(shown["backfill"]["run_id"]) == claim.run_id


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ((), None),
        (("--list", "--pending"), None),
        (("--all", "fill"), None),
        (("--pending", "fill"), None),
        (("--list", "--write"), "--write"),
        (("--pending", "--force"), "--force"),
        (("fill", "--watch"), "--watch"),
        (("fill", "--write", "--dry-run"), "--dry-run"),
        (("--all", "--status", "failed"), "--status"),
        (("--list", "--status", "done"), "--status"),
        (("--list", "--limit", "0"), "--limit"),
    ],
)
def test_flags_that_say_nothing_together_are_refused(queue: Cli, words: tuple[str, ...], at: str | None):
    answer = queue("backfill", *words, "--json")
    assert (answer.code, answer.codes) == (2, ["X_CLI_BAD_FLAG"])
    assert at is None or answer.json["findings"][0]["at"] == at


def test_people_see_what_a_pass_would_touch_and_what_holds(queue: Cli, seeds: Seeds):
    asyncio.run(seeds.driver.publish_catalog([entry("fill", environment="x", environments=["x"])]))
    answer = queue("backfill", "fill", COLUMNS="100")
    assert answer.code == 0
    assert "✓" in answer.out
    assert "x is one of x" in answer.out
    assert "nothing was changed: add --write" in answer.err
    assert "pending" in queue("backfill", "--pending").out
    assert "no backfill has run yet" in queue("backfill", "--list").out + queue("backfill", "--list").err


# -- required migrations -------------------------------------------------------------------------------
def test_a_migration_that_is_missing_blocks_and_a_list_that_cannot_be_read_fails_the_command(
    cli: Cli, pg_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ULTIJOBS_ENV", raising=False)

    async def prepare(statement: str) -> None:
        connection = await asyncpg.connect(pg_url)
        await connection.execute(statement)
        await connection.close()

    said = [json.dumps({"requires": requires, "batch": 10, "rate": 5.0}) for requires in ("shop.0042_fill", None)]
    blocking(
        prepare(
            "insert into x_catalog (kind, name, queue, declaration) values "
            f"('backfill', 'late', 'default', '{said[0]}'), ('backfill', 'plain', 'default', '{said[1]}')"
        )
    )
    there = ("--database-url", pg_url, "--json")
    answer = cli("backfill", "--all", "--write", *there)
    assert answer.code == 1
    assert {row["name"]: row["action"] for row in answer.data["rows"]} == {"late": "blocked", "plain": "enqueued"}
    assert answer.json["findings"][0]["fix"] == "python manage.py migrate shop 0042_fill"

    blocking(
        prepare(
            "create table django_migrations (app text, name text); "
            "do $$ begin create role stranger login; exception when duplicate_object then null; end $$; "
            "grant usage on schema public to stranger; grant select on all tables in schema public to stranger; "
            "revoke all on django_migrations from stranger"
        )
    )
    answer = cli("backfill", "late", "--database-url", pg_url.replace("postgres@", "stranger@"), "--json")
    assert (answer.code, answer.codes) == (4, ["X_RIGHTS_MISSING"])
    assert "django_migrations" in answer.json["findings"][0]["cause"]

    blocking(prepare("insert into django_migrations values ('shop', '0042_fill')"))
    answer = cli("backfill", "late", "--write", *there)
    assert (answer.code, answer.data["rows"][0]["action"]) == (0, "enqueued")
