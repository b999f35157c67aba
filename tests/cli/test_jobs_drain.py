"""`jobs drain` on the command line: what it asks for, what it answers, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Seeds
from tests.cli.processes import Shop
from tests.support.servers import Server


@pytest.fixture
def there_url(pg: Server) -> Iterator[str]:
    url = pg.create()
    yield url
    pg.drop(url)


def shop(tmp_path: Path, url: str) -> Shop:
    made = Shop(tmp_path, url)
    for n in range(3):
        assert made.run("jobs", "enqueue", "ship", "--input", f'{{"id": "o-{n}"}}', "--app", "shop:app").code == 0
    return made


def test_a_queue_goes_whole_and_says_how_many(tmp_path: Path, pg_url: str, there_url: str) -> None:
    here = shop(tmp_path, pg_url)
    words = ["jobs", "drain", "--queue", "default", "--to", there_url, "--json"]
    looked = here.run(*words, "--dry-run")
    assert (looked.code, looked.data["dry_run"], looked.data["matched"]) == (0, True, 3)
    assert any("is paused by this" in warning for warning in looked.data["warnings"])
    unasked = here.run(*words)
    assert (unasked.code, unasked.json["findings"][0]["code"]) == (2, "X_CLI_BAD_FLAG")
    assert here.run("stats", "--json").data["totals"]["ready"]["value"] == 3
    done = here.run(*words, "--yes", "--pace", "2/10ms")
    assert (done.code, done.data["matched"], len(done.data["done"])) == (0, 3, 3)
    assert done.data["refused"] == done.data["failed"] == []
    there = Shop(tmp_path, there_url)
    assert sorted(row["id"] for row in there.run("jobs", "ls", "--json").data["rows"]) == sorted(done.data["done"])


def test_a_database_that_is_not_migrated_or_away_is_exit_4_and_nothing_changes(
    tmp_path: Path, pg_url: str, empty_pg_url: str
) -> None:
    here = shop(tmp_path, pg_url)
    for to, code in ((empty_pg_url, "X_SCHEMA_OUTDATED"), ("postgresql://127.0.0.1:1/x", "X_DRIVER_UNAVAILABLE")):
        done = here.run("jobs", "drain", "--queue", "default", "--to", to, "--yes", "--json")
        assert (done.code, done.json["findings"][0]["code"]) == (4, code)
    assert here.run("stats", "--json").data["totals"]["ready"]["value"] == 3
    assert {row["state"] for row in here.run("queues", "--json").data["rows"]} != {"paused"}


def test_the_same_place_is_refused_as_a_failure(tmp_path: Path, pg_url: str) -> None:
    done = shop(tmp_path, pg_url).run("jobs", "drain", "--queue", "default", "--to", pg_url, "--yes", "--json")
    assert (done.code, done.json["findings"][0]["code"]) == (1, "X_MOVE_REFUSED")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--queue", "a", "--to", "redis://h"], 4),
        (["--queue", "a", "--to", "shop.db"], 2),
        (["--queue", "a"], 2),
        (["--to", "postgresql://h/d"], 2),
        (["--queue", "a", "--where", "queue:a", "--to", "postgresql://h/d"], 2),
        (["--where", "state:ready", "--to", "memory:"], 2),
        (["--queue", "a", "--to", "memory:"], 1),
    ],
)
def test_what_cannot_be_drained_is_refused(queue: Cli, seeds: Seeds, words: list[str], code: int) -> None:
    seeds.job(queue="a")
    answer = queue("jobs", "drain", *words, "--yes", "--json")
    assert answer.code == code, answer.json
    assert answer.json["findings"][0]["fix"]
