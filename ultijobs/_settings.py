"""Settings from outside of the code: `ULTIJOBS_*` variables, else `[tool.ultijobs]` of the nearest pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ultijobs.errors import Invariant

__all__ = ["Settings", "load", "table"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set; None where nothing is. `environment` is where this runs, such as "production"."""

    database_url: str | None = None
    schema: str | None = None
    app: str | None = None
    environment: str | None = None
    code_version: str | None = None


def load(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Settings:
    """The settings of this process. An empty variable counts as not set.

    Raises `Invariant` for a pyproject.toml that cannot be read and for a value in it that is no text.
    """
    env = os.environ if environ is None else environ
    file = _Table.nearest(Path.cwd() if directory is None else directory)
    return Settings(
        database_url=env.get("ULTIJOBS_DATABASE_URL") or env.get("DATABASE_URL") or file.text("database_url"),
        schema=env.get("ULTIJOBS_SCHEMA") or file.text("schema"),
        app=env.get("ULTIJOBS_APP") or file.text("app"),
        environment=env.get("ULTIJOBS_ENV") or file.text("env"),
        code_version=env.get("ULTIJOBS_CODE_VERSION") or file.text("code_version"),
    )


def table(name: str, directory: Path | None = None) -> tuple[Path | None, Mapping[str, Any]]:
    """The nearest pyproject.toml and its `[tool.ultijobs.NAME]`, empty where there is none.

    Raises `Invariant` for one that cannot be read, and where that name is no table.
    """
    file = _Table.nearest(Path.cwd() if directory is None else directory)
    value = file.values.get(name, {})
    if not isinstance(value, dict):
        raise Invariant(f"{file.path}: [tool.ultijobs] {name} is not a table", fix=f"write [tool.ultijobs.{name}]")
    return file.path, cast("dict[str, Any]", value)


@dataclass(frozen=True, slots=True)
class _Table:
    path: Path | None
    values: Mapping[str, Any]

    @classmethod
    def nearest(cls, directory: Path) -> _Table:
        for folder in (directory, *directory.parents):
            path = folder / "pyproject.toml"
            if path.is_file():
                return cls(path, _section(path))
        return cls(None, {})

    def text(self, key: str) -> str | None:
        value = self.values.get(key.replace("_", "-"), self.values.get(key))
        if value is None or isinstance(value, str):
            return value or None
        raise Invariant(f"{self.path}: [tool.ultijobs] {key} is {value!r:.100}, not text", fix=f'write {key} = "…"')


def _section(path: Path) -> Mapping[str, Any]:
    try:
        tool: object = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise Invariant(f"{path} cannot be read: {error}", fix=f"correct {path.name}") from error
    section: object = cast("dict[str, object]", tool).get("ultijobs", {}) if isinstance(tool, dict) else {}
    return cast("dict[str, Any]", section) if isinstance(section, dict) else {}
