"""What holds for this command: its flags, over what the library reads from variables and pyproject.toml."""

from __future__ import annotations

import os

from ultijobs import _settings
from ultijobs.errors import CliBadFlag
from ultijobs_cli.flags import Flags

__all__ = ["application", "database", "export", "named", "no_database", "schema_of"]


def named(flags: Flags) -> bool:
    """True when a setting names a database, rather than the application's own code."""
    return bool(flags.database_url or _settings.load().database_url)


def database(flags: Flags) -> tuple[str, str]:
    """The URL and the schema. Raises `CliBadFlag` where no setting names a database."""
    known = _settings.load()
    url = flags.database_url or known.database_url
    if not url:
        raise no_database()
    return url, schema_of(flags)


def schema_of(flags: Flags) -> str:
    """The schema that holds the tables."""
    return flags.schema or _settings.load().schema or "public"


def no_database() -> CliBadFlag:
    """The answer where neither a setting nor the application names a database."""
    return CliBadFlag(
        "no database is named",
        fix="give --database-url, or set ULTIJOBS_DATABASE_URL, to postgresql://USER@HOST/DB or embedded:DIR",
    )


def application(flags: Flags) -> str | None:
    """The application as `MODULE:NAME`, where a setting names it."""
    return flags.app or _settings.load().app


def export(flags: Flags) -> None:
    """Puts what the flags say where an application that names no database of its own, and child processes, read it."""
    for name, value in (("ULTIJOBS_DATABASE_URL", flags.database_url), ("ULTIJOBS_SCHEMA", flags.schema)):
        if value:
            os.environ[name] = value
