"""Where the demo keeps its database, and the lock that lets only one demo use it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ultijobs.errors import Invariant

__all__ = ["default_home", "locked"]


def default_home(*tables: str) -> Path:
    """A folder that the next demo finds again, so that only the first one makes a database.

    Its name goes with the text of all `tables`, so that a release with other tables starts on a database of its own.
    """
    layout = hashlib.sha256("\0".join(tables).encode()).hexdigest()[:8]
    return Path(tempfile.gettempdir()) / f"ultijobs-demo-{os.getuid()}-{layout}"


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
