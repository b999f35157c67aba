"""Where the settings come from: flags, ULTIJOBS_* variables, DATABASE_URL, [tool.ultijobs] of the nearest pyproject."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ultijobs.errors import CliBadFlag
from ultijobs_cli.command import Flags

__all__ = ["application", "database", "log_format"]


def database(flags: Flags) -> tuple[str, str]:
    """The URL and the schema. Raises `CliBadFlag` where no setting names a database."""
    url = _setting("database_url", flags.database_url) or os.environ.get("DATABASE_URL") or _file("database_url")
    if not url:
        raise CliBadFlag("no database is named", fix="give --database-url postgresql://…, or set ULTIJOBS_DATABASE_URL")
    return url, _setting("schema", flags.schema) or _file("schema") or "public"


def application(flags: Flags) -> str | None:
    """The application as `MODULE:NAME`, where a setting names it."""
    return _setting("app", flags.app) or _file("app")


def log_format(flags: Flags) -> str:
    return _setting("log_format", flags.log_format) or _file("log_format") or "text"


def _setting(name: str, flag: str | None) -> str | None:
    return flag or os.environ.get(f"ULTIJOBS_{name.upper()}")


def _file(name: str) -> str | None:
    value = _nearest().get(name)
    return value if isinstance(value, str) else None


def _nearest() -> Mapping[str, Any]:
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return cast(
                "dict[str, Any]", tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("ultijobs", {})
            )
    return {}
