"""A PostgreSQL server of the tests' own: TCP on loopback, nothing synced to disk, gone with the test process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from ultijobs.postgres.cluster import Runner, wheel_binaries
from ultijobs.postgres.migrate import migrate

T = TypeVar("T")
# What asyncpg raises to a caller whose connection has ended: which one depends on what it had read by then.
LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
STARTS_WITHIN = 30.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "timezone": "Europe/Berlin",
    "lc_messages": "C",
    "max_wal_size": "256MB",
}
# The reader's end of file is the death of the test process, however it died.
WATCHDOG = 'read -r _; kill -QUIT "$0" 2>/dev/null; sleep 2; kill -KILL "$0" 2>/dev/null; rm -rf "$1"'


class Server:
    """One running cluster; `url(database)` is how to reach it."""

    def __init__(self, binaries: Path, user: str, *, of: Server | None = None, **settings: str) -> None:
        """With `of` it is a hot standby of that one."""
        self._runner, self._user = Runner(binaries, user), user
        self._settings = SETTINGS | settings
        self.environment: dict[str, str] = {}
        """What its next start adds to the environment."""
        self._root = Path(tempfile.mkdtemp(prefix="ultijobs-tests-", dir=roomy_memory()))
        self._root.chmod(0o755)
        self._data = self._root / "data"
        self.port = free_port()
        self._runner.own(self._data)
        place = ("--no-sync", "-U", "postgres", "-D", str(self._data))
        if of is None:
            self._runner.run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", *place)
        else:
            primary = ("-h", "127.0.0.1", "-p", str(of.port), "--write-recovery-conf", "--checkpoint=fast")
            self._runner.run("pg_basebackup", *primary, *place)
        self._log = (self._root / "log").open("wb")
        self._template: str | None = None
        self.start()

    def start(self) -> None:
        """Also after `halt`, on the same port and the same data."""
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [self._runner.binaries / "postgres", *self._place(), *options],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, **self.environment},
            **self._runner.identity(),
        )
        self._watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, str(self._process.pid), str(self._root)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        blocking(self._answering())

    def _place(self) -> tuple[str, ...]:
        return "-D", str(self._data), "-p", str(self.port), "-k", str(self._data)

    def said(self) -> str:
        """The server's own log so far."""
        return (self._root / "log").read_text(errors="replace")

    def standby(self) -> Server:
        """A hot standby on the same machine, with the same settings."""
        return Server(self._runner.binaries, self._user, of=self, **self._settings)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, *, migrated: bool = True) -> str:
        """A fresh database's URL; a migrated one is a copy of a template."""
        name = f"t_{uuid.uuid4().hex[:16]}"
        if migrated and self._template is None:
            template = "migrated_template"
            blocking(self._admin(f"create database {template}"))
            blocking(migrate(self.url(template), "public"))
            self._template = template
        source = f" template {self._template} strategy file_copy" if migrated else ""
        blocking(self._admin(f"create database {name}{source}"))
        return self.url(name)

    def drop(self, url: str) -> None:
        name = url.rpartition("/")[2]
        blocking(self._admin(f"drop database if exists {name} with (force)"))

    def stop(self) -> None:
        self.halt()
        self._log.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def halt(self) -> None:
        """Ends it at once, as `pg_ctl stop -m fast` does; its data stay."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._watchdog.kill()
        self._watchdog.wait(5)
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()

    async def _admin(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url(), timeout=10)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def _answering(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                connection = await asyncpg.connect(self.url(), timeout=5)
            except (OSError, asyncpg.PostgresError):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError(f"PostgreSQL did not start:\n{self.said()[-2000:]}") from None
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return


def on_system_server() -> bool:
    """Whether this run shows the driver on the PostgreSQL of the machine, and so leaves out what needs none."""
    return os.environ.get("ULTIJOBS_TEST_SERVER", "wheel") == "system"


def start_server() -> Server:
    """The wheel's PostgreSQL, or with `ULTIJOBS_TEST_SERVER=system` the newest one of this machine."""
    if on_system_server():
        return Server(system_binaries(), "postgres")
    return Server(wheel_binaries(), "pgserver")


def start_best_server(**settings: str) -> Server:
    """The newest PostgreSQL of this machine, with statements counted where it can; else the wheel's."""
    binaries = installed_binaries()
    if binaries is None:
        return Server(wheel_binaries(), "pgserver", **settings)
    if (binaries.parent / "lib" / "pg_stat_statements.so").exists():
        settings["shared_preload_libraries"] = "pg_stat_statements"
    return Server(binaries, "postgres", **settings)


def system_binaries() -> Path:
    found = installed_binaries()
    assert found is not None, "ULTIJOBS_TEST_SERVER=system, and there is no PostgreSQL on this machine"
    return found


def installed_binaries() -> Path | None:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    found = shutil.which("postgres")
    return None if found is None else Path(found).resolve().parent


def roomy_memory() -> str | None:
    """Where a cluster lives without touching a disk, if this machine has 2 GB for it."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 * 1024**3
    return str(memory) if roomy else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on a loop of its own in a thread, so that a test's own loop is not touched."""
    answer: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            answer.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failure.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return answer[0]
