"""Reads the operator's own keys: the project's `[tool.ultijobs.keys]`, and over them `ultijobs/keys.toml` at home."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from ultijobs import _settings
from ultijobs.errors import Invariant
from ultijobs_tui.keymap import Keymap

__all__ = ["load_keys", "own_file"]


def own_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where an operator keeps keys for all projects."""
    env = os.environ if environ is None else environ
    return Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ultijobs" / "keys.toml"


def load_keys(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Keymap:
    """Raises `Invariant`, which names the file, for what cannot be read or cannot be a key."""
    chosen: dict[str, list[str]] = {}
    told = "keys"
    path, table = _settings.table("keys", directory)
    if path is not None and table:
        told = f"{path} [tool.ultijobs.keys]"
        chosen.update(_texts(table, told))
    own = own_file(environ)
    if own.is_file():
        told = str(own) if not chosen else f"{own}, over {path}"
        chosen.update(_texts(_read(own), str(own)))
    return Keymap(chosen, told=told)


def _read(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Invariant(f"{path} cannot be read: {error}", fix=f"correct {path.name}") from error


def _texts(table: Mapping[str, object], told: str) -> dict[str, list[str]]:
    """By id; an id with a dot may be written as TOML's own table."""
    found: dict[str, list[str]] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            inner = _texts(cast("Mapping[str, object]", value), told)
            found.update({f"{name}.{rest}": keys for rest, keys in inner.items()})
        elif isinstance(value, str):
            found[name] = [value]
        elif isinstance(value, list) and all(isinstance(key, str) for key in cast("list[object]", value)):
            found[name] = cast("list[str]", value)
        else:
            raise Invariant(f"{told}: {name} is {value!r:.100}, not a key", fix=f'write {name} = "k", or a list')
    return found
