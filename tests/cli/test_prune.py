"""`prune`: counts first, removes what is over its time, and says by whose retention."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs import Retention
from ultijobs._queue.records import Outcome
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retention.declared import declared

SHORT = Retention(done="1h", cancelled="1h", dead="2d")


def publish(seeds: Seeds, name: str, retention: Retention) -> None:
    entry = CatalogEntry("job", name, "default", {"retention": declared(retention)})
    asyncio.run(seeds.driver.publish_catalog([entry]))


def expired(answer) -> dict[str, int]:
    return {row["kind"]: row["expired"]["value"] for row in answer.data["rows"] if row["expired"]["value"]}


@pytest.fixture
def old(seeds: Seeds) -> Seeds:
    """A done and a dead job of eight days ago, another of either kind of now."""
    for days in (8, 0):
        seeds.settled(Outcome.OK)
        seeds.dead()
        seeds.clock.move(days=days)
    return seeds


def test_a_dry_run_counts_every_kind_and_changes_nothing(queue: Cli, old: Seeds) -> None:
    answer = queue("prune", "--dry-run", "--json")
    assert answer.code == 0
    kinds = ["done", "cancelled", "failed", "dead", "events", "outbox", "schedule", "activity"]
    assert [row["kind"] for row in answer.data["rows"]] == kinds
    assert expired(answer) == {"done": 1}
    assert answer.data["rows"][0]["keep_ms"] == 7 * 86_400_000
    assert answer.data["rows"][4]["keep_ms"] is None
    assert (answer.data["deleted"], answer.data["dry_run"], answer.data["activity_id"]) == (0, True, None)
    assert answer.data["matched"] == {"value": 1, "kind": "exact"}
    assert len(queue("jobs", "ls", "--json").data["rows"]) == 4
    assert queue("activity", "--json").data["rows"] == []


def test_what_is_over_its_time_goes_and_the_act_is_on_record(queue: Cli, old: Seeds) -> None:
    answer = queue("prune", "--json", "--as", "ana", "--reason", "disk is full")
    assert answer.code == 0
    assert answer.data["deleted"] == 1
    assert {row["kind"]: row["deleted"] for row in answer.data["rows"]}["done"] == 1
    assert len(queue("jobs", "ls", "--json").data["rows"]) == 3
    (act,) = queue("activity", "--json").data["rows"]
    assert (act["actor"], act["action"], act["reason"], act["done"]) == ("ana", "prune", "disk is full", 1)
    assert act["detail"]["keep"]["done_ms"] == 7 * 86_400_000
    again = queue("prune", "--json")
    assert (again.code, again.data["deleted"], again.data["activity_id"]) == (0, 0, None)


def test_without_an_application_the_declared_retention_holds_and_is_named(queue: Cli, old: Seeds) -> None:
    assert queue("prune", "--dry-run", "--json").data["retention"] == "defaults"
    publish(old, "charge", SHORT)
    answer = queue("prune", "--dry-run", "--json")
    assert answer.data["retention"] == "catalogue"
    assert expired(answer) == {"done": 1, "dead": 1}


def test_of_several_applications_the_longest_time_holds(queue: Cli, old: Seeds) -> None:
    publish(old, "charge", SHORT)
    publish(old, "other", Retention(done="30d", dead="2d"))
    assert expired(queue("prune", "--dry-run", "--json")) == {"dead": 1}


def test_a_declaration_that_nobody_has_confirmed_for_a_week_holds_nothing_back(queue: Cli, old: Seeds) -> None:
    publish(old, "gone", Retention(done="30d", dead="30d"))
    old.clock.move(days=6)
    publish(old, "charge", SHORT)
    assert expired(queue("prune", "--dry-run", "--json")) == {}
    old.clock.move(days=2)
    assert expired(queue("prune", "--dry-run", "--json")) == {"done": 2, "dead": 2}


def test_the_applications_own_retention_wins_over_what_it_declared_before(
    queue: Cli, old: Seeds, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prunable.py").write_text(
        "from ultijobs import App, Retention, job\n"
        "@job(idempotency_key=lambda _: 'k', tenant='none')\n"
        "async def charge() -> None: ...\n"
        "app = App(jobs=[charge], retention=Retention(done='1h', dead='2d'))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    publish(old, "charge", Retention())
    answer = queue("prune", "--app", "prunable:app", "--dry-run", "--json")
    assert answer.code == 0, answer.err
    assert answer.data["retention"] == "application"
    assert expired(answer) == {"done": 1, "dead": 1}
    publish(old, "of-another", Retention(dead="60d", done="1h"))
    assert expired(queue("prune", "--app", "prunable:app", "--dry-run", "--json")) == {"done": 1}


def test_a_person_reads_what_goes_and_by_whose_times(queue: Cli, old: Seeds) -> None:
    answer = queue("prune", "--yes")
    assert answer.code == 0
    assert "done" in answer.out
    assert "by the default retention" in answer.out
    assert "prune: removed 1 row" in answer.out


@pytest.mark.parametrize("odd", [0, -1, "soon", None, 10**30], ids=str)
def test_a_declaration_that_no_release_wrote_makes_nothing_go_early(queue: Cli, old: Seeds, odd: object) -> None:
    told = {**declared(SHORT), "done_ms": odd}
    asyncio.run(old.driver.publish_catalog([CatalogEntry("job", "charge", "default", {"retention": told})]))
    answer = queue("prune", "--dry-run", "--json")
    assert (answer.code, answer.data["retention"]) == (0, "defaults")
    assert expired(answer) == {"done": 1}
