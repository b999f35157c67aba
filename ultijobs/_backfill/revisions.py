"""Which revisions lie behind the heads that Alembic keeps: only the application's migration scripts know."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from ultijobs.errors import DriverUnavailable

__all__ = ["ancestors", "configuration"]


def configuration(directory: Path) -> Path | None:
    """The nearest alembic.ini of `directory` and the folders above it, where Alembic is installed."""
    if find_spec("alembic") is None:
        return None
    return next(
        (file for folder in (directory, *directory.parents) if (file := folder / "alembic.ini").is_file()), None
    )


def ancestors(heads: Iterable[str], ini: Path) -> frozenset[str]:
    """`heads` and all revisions before them. Raises `DriverUnavailable` when the scripts cannot be read."""
    from alembic.config import Config  # noqa: PLC0415 - optional
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - as above

    try:
        scripts = ScriptDirectory.from_config(Config(str(ini)))
        return frozenset(script.revision for script in scripts.iterate_revisions(tuple(heads), "base"))
    except Exception as error:
        raise DriverUnavailable(
            f"the migrations that {ini} names cannot be read: {type(error).__name__}: {error}",
            fix=f"alembic --config {ini} history",
        ) from error
