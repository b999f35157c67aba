"""What a command says when its database is away, empty, or not of its version."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.cli.processes import Shop
from tests.integration.postgres.test_rights import GRANTS
from tests.support.eventually import eventually
from ultijobs.inspection import Inspector
from ultijobs.postgres.migrate import target

READS = [["jobs"], ["jobs", "show", "abcdef"], ["stats"], ["queues"], ["workers"], ["leases"], ["causes"], ["activity"]]
ENQUEUE = ["jobs", "enqueue", "ship", "--input", '{"id": "o-1"}']


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield listening.getsockname()[1]


@pytest.mark.parametrize("words", [["jobs", "ls"], ENQUEUE, ["migrate"], ["tui", "--once"]], ids=" ".join)
def test_a_database_that_never_answers_is_given_up_on(tmp_path: Path, silent_port: int, words: list[str]) -> None:
    done = Shop(tmp_path, f"postgresql://shop:hunter2@127.0.0.1:{silent_port}/shop").run(*words, within=30)
    assert done.code == 4
    assert "X_DRIVER_UNAVAILABLE" in done.err
    assert "hunter2" not in done.out + done.err


def test_a_database_that_is_away_is_exit_4_and_keeps_its_password(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "postgresql://shop:s3cr:t@w0rd@127.0.0.1:1/shop")
    for words in (
        ["jobs", "ls"],
        ["stats", "--json"],
        ENQUEUE,
        ["migrate"],
        ["migrate", "--check", "--json"],
        ["tui", "--once"],
    ):
        done = shop.run(*words)
        assert done.code == 4, words
        assert "X_DRIVER_UNAVAILABLE" in done.err
        assert "w0rd" not in done.out + done.err


@pytest.mark.parametrize("url", ["redis://h", "nats://h", "mysql://h/d", "shop.db", "embedded:"])
def test_a_driver_that_cannot_be_used_is_exit_4(tmp_path: Path, url: str) -> None:
    done = Shop(tmp_path, url).run("jobs", "ls", "--json")
    assert done.code == 4
    assert done.json["findings"][0]["fix"]


@pytest.mark.parametrize(
    "words",
    [["migrate"], ["migrate", "--check"], ENQUEUE, ["tui", "--once"], ["doctor"], ["worker"], ["scheduler"], ["relay"]],
    ids=" ".join,
)
def test_a_driver_that_is_not_built_is_said_to_be_so_by_every_command(tmp_path: Path, words: list[str]) -> None:
    done = Shop(tmp_path, "nats://u:s3cret@h").run(*words)
    assert done.code == 4
    assert "X_NOT_IMPLEMENTED: the nats driver is not built yet" in done.err
    assert "fix: use postgresql://USER@HOST/DB, embedded:DIR or memory:" in done.err
    assert "s3cret" not in done.out + done.err


def test_a_database_that_does_not_exist_is_answered_with_how_it_is_made(tmp_path: Path, pg_url: str) -> None:
    done = Shop(tmp_path, f"{pg_url}_nowhere").run("migrate")
    assert done.code == 4
    assert "fix: make the database with createdb" in done.err


def test_an_enqueue_without_the_input_that_its_job_takes_asks_for_it(tmp_path: Path, pg_url: str) -> None:
    done = Shop(tmp_path, pg_url).run("jobs", "enqueue", "ship")
    assert done.code == 2
    assert "--input: is missing, and job ship takes one" in done.err
    assert "fix: write --input '{" in done.err


def test_without_tables_every_command_names_both_versions_and_the_way_out(tmp_path: Path, empty_pg_url: str) -> None:
    shop = Shop(tmp_path, empty_pg_url)
    for words in [*READS[:2], ENQUEUE, ["worker"], ["scheduler"], ["tui", "--once"]]:
        done = shop.run(*words)
        assert done.code == 4, words
        assert "X_SCHEMA_OUTDATED" in done.err
        assert "version 0" in done.err
        assert f"version {target()}" in done.err
        assert "fix: ultijobs migrate" in done.err


async def test_tables_of_an_earlier_release_are_refused_with_both_versions_and_the_way_out(
    tmp_path: Path, pg_url: str
) -> None:
    connection = await asyncpg.connect(pg_url)
    await connection.execute("update x_schema set version = 0")
    await connection.close()
    shop = Shop(tmp_path, pg_url)
    for words in (["jobs"], ["worker"], ["scheduler"]):
        done = shop.run(*words)
        assert done.code == 4, words
        assert "at version 0" in done.err
        assert f"version {target()}" in done.err
        assert "fix: ultijobs migrate" in done.err


async def test_no_command_but_migrate_needs_the_right_to_make_tables(tmp_path: Path, pg_url: str) -> None:
    connection = await asyncpg.connect(pg_url)
    role = f"plain_{pg_url[-8:]}"
    await connection.execute(f"create role {role} login; revoke create on schema public from public")
    await connection.execute(GRANTS.format(role=role))
    shop = Shop(tmp_path, pg_url.replace("postgres@", f"{role}@"))
    for words in (["stats"], ["jobs"], ENQUEUE, ["prune"]):
        done = shop.run(*words)
        assert done.code == 0, (words, done.err)
    await connection.execute(f"drop owned by {role}; drop role {role}")
    await connection.close()


async def test_tables_of_a_later_release_that_do_not_fit_are_left_alone(tmp_path: Path, pg_url: str) -> None:
    later = target() + 1
    connection = await asyncpg.connect(pg_url)
    await connection.execute(
        f"insert into x_schema (version, compatible_from, library) values ({later}, {later}, '9.0')"
    )
    await connection.close()
    shop = Shop(tmp_path, pg_url)
    for words in (["jobs"], ENQUEUE, ["worker"], ["migrate"]):
        done = shop.run(*words)
        assert done.code == 4, words
        assert f"version {later}" in done.err
        assert f"version {target()}" in done.err


def test_migrate_makes_the_tables_once_and_check_tells(tmp_path: Path, empty_pg_url: str) -> None:
    shop = Shop(tmp_path, empty_pg_url)
    missing = shop.run("migrate", "--check", "--json")
    assert missing.code == 1
    assert missing.data == {"schema": "public", "version": 0, "needed": target()}
    first = shop.run("migrate", "--json")
    assert first.code == 0
    applied = list(range(1, target() + 1))
    assert first.data == {"schema": "public", "version": target(), "applied": applied, "declared": 2}
    assert shop.run("migrate", "--json").data["applied"] == []
    assert shop.run("migrate", "--check", "--json").data["version"] == target()


async def test_migrate_with_an_application_tells_operators_what_it_declares(tmp_path: Path, empty_pg_url: str) -> None:
    assert Shop(tmp_path, empty_pg_url).run("migrate").code == 0
    async with Inspector.connect(empty_pg_url) as api:
        assert sorted((entry.name, entry.queue) for entry in await api.catalog("job")) == [
            ("ship", "default"),
            ("wait", "slow"),
        ]


def test_an_embedded_server_is_migrated_and_read_without_any_other(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ultijobs-cli-") as folder:
        shop = Shop(tmp_path, f"embedded:{folder}/db")
        mistyped = shop.run("jobs")
        assert mistyped.code == 4
        assert f"fix: ultijobs migrate --database-url embedded:{folder}/db" in mistyped.err
        assert shop.run("migrate", "--check").code == 1
        assert not Path(folder, "db").exists()
        assert shop.run("migrate").code == 0
        assert shop.run(*ENQUEUE).code == 0
        assert len(shop.run("jobs", "--json").data["rows"]) == 1


def test_a_schema_of_ones_own_is_used_by_every_command(tmp_path: Path, empty_pg_url: str) -> None:
    shop = Shop(tmp_path, empty_pg_url)
    assert shop.run("migrate", "--schema", "queue").code == 0
    assert shop.run("jobs", "--schema", "queue", "--json").data["rows"] == []
    assert shop.run(*ENQUEUE, "--schema", "queue").code == 0
    assert len(shop.run("jobs", "--json", ULTIJOBS_SCHEMA="queue").data["rows"]) == 1
    assert shop.run("jobs").code == 4


def test_every_reading_command_answers_on_an_empty_queue(tmp_path: Path, pg_url: str) -> None:
    shop = Shop(tmp_path, pg_url)
    for words in READS:
        if "show" not in words:
            done = shop.run(*words, "--json")
            assert done.code == 0, done.err
            assert done.data


def test_settings_come_from_flags_before_variables_before_the_project_file(tmp_path: Path, pg_url: str) -> None:
    shop = Shop(tmp_path, None)
    assert shop.run("jobs").code == 2
    (tmp_path / "pyproject.toml").write_text(f'[tool.ultijobs]\ndatabase-url = "{pg_url}"\n')
    assert shop.run("jobs").code == 0
    assert shop.run("jobs", DATABASE_URL="mysql://h").code == 4
    assert shop.run("jobs", DATABASE_URL="mysql://h", ULTIJOBS_DATABASE_URL=pg_url).code == 0
    assert shop.run("jobs", "--database-url", pg_url, ULTIJOBS_DATABASE_URL="mysql://h").code == 0


async def test_ctrl_c_ends_a_watch_with_130(tmp_path: Path, pg_url: str) -> None:
    with Shop(tmp_path, pg_url).started("jobs", "ls", "--watch") as watching:
        await eventually(watching.said, within=40)
        watching.signal(signal.SIGINT)
        assert watching.code() == 130


def test_a_reader_that_left_is_no_error(tmp_path: Path, pg_url: str) -> None:
    shop = Shop(tmp_path, pg_url)
    command = f"{sys.executable} -m ultijobs_cli explain --json-lines; echo code $? >&2"
    piped = subprocess.run(
        ["bash", "-c", f"({command}) | head -n 1"],
        env=shop.env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(piped.stdout.splitlines()) == 1
    assert piped.stderr.strip() == "code 0"
