"""Where the demo keeps its database, and the lock that lets only one demo use it."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ultijobs.errors import Invariant

__all__ = ["default_home", "locked"]


def default_home() -> Path:
    """A folder that the next demo finds again, so that only the first one makes a database."""
    return Path(tempfile.gettempdir()) / f"ultijobs-demo-{os.getuid()}"


@contextmanager
def locked(home: Path) -> Generator[Path]:
    """Makes the folder and holds its lock. Raises `Invariant` when another demo runs in it, or when it is not ours."""
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise Invariant(f"{home} belongs to another user", fix="ultijobs demo --dir DIR")
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Invariant(f"a demo runs in {home} already", fix="ultijobs demo --dir DIR") from None
        yield home
