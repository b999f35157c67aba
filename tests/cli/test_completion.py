"""The shells complete commands, flags and closed lists of words."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from tests.cli.processes import Shop
from tests.support.eventually import eventually


def completed(tmp_path: Path, shell: str, typed: str, url: str | None = None) -> str:
    words = typed.split(" ")
    env = {"_ULTIJOBS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": typed}
    env |= {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = Shop(tmp_path, url).run(**env)
    assert done.err == ""
    return done.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ultijobs que", "queues"),
        ("ultijobs jobs ", "enqueue"),
        ("ultijobs jobs ls --state de", "dead"),
        ("ultijobs jobs ls --lim", "--limit"),
    ],
)
def test_what_is_typed_is_completed(tmp_path: Path, shell: str, typed: str, offered: str) -> None:
    assert offered in completed(tmp_path, shell, typed)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_the_command(tmp_path: Path, shell: str) -> None:
    script = Shop(tmp_path, None).run(_ULTIJOBS_COMPLETE=f"source_{shell}").out
    assert "_ULTIJOBS_COMPLETE" in script
    assert "ultijobs" in script


@pytest.fixture
async def named_url(pg_url: str) -> str:
    """A database that knows a queue, a worker and one name of each kind; some of them are hostile."""
    connection = await asyncpg.connect(pg_url)
    await connection.execute(
        "insert into x_catalog (kind, name, queue, declaration) values ('job', 'charge_card', 'billing', '{}'),"
        " ('job', 'charge\u001b[31m', 'bil ling', '{}'), ('task', 'nightly_digest', null, '{}'),"
        " ('backfill', 'rewrite_slugs', null, '{}')"
    )
    await connection.execute(
        "insert into x_workers (instance, state, free_slots, running, worker_id, host, pid, version, queues, names,"
        " concurrency) values (gen_random_uuid(), 'running', 1, 0, 'web-3', 'h', 1, '1', '{mail}', '{a}', 4)"
    )
    await connection.close()
    return pg_url


@pytest.mark.parametrize(
    ("shell", "typed", "offered"),
    [
        ("bash", "ultijobs queues pause bil", "billing"),
        ("zsh", "ultijobs workers drain web", "web-3"),
        ("fish", "ultijobs jobs ls --name char", "charge_card"),
        ("bash", "ultijobs tasks show nigh", "nightly_digest"),
        ("bash", "ultijobs backfill rewr", "rewrite_slugs"),
    ],
)
async def test_names_that_the_database_knows_are_completed(
    tmp_path: Path, named_url: str, shell: str, typed: str, offered: str
) -> None:
    # A shell is not kept waiting: on a busy machine it may be offered nothing the first time.
    def said_so() -> str:
        said = completed(tmp_path, shell, typed, named_url)
        return said if offered in said else ""

    said = await eventually(said_so, within=60)
    assert "\x1b" not in said
    assert "bil ling" not in said


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/away", "embedded:nowhere"])
def test_a_database_that_is_away_completes_nothing_in_silence(tmp_path: Path, url: str | None) -> None:
    assert "Traceback" not in completed(tmp_path, "bash", "ultijobs queues pause b", url)
    assert not (tmp_path / "nowhere").exists()
