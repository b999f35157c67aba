"""Masks values of a payload whose key matches a pattern, before anything is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, cast

from ultijobs._queue.records import CatalogEntry

__all__ = ["ALWAYS", "MASK", "patterns_of", "redact"]

MASK: Final = "•••"
ALWAYS: Final = ("*password*", "*passwd*", "*secret*", "*token*", "authorization", "*api_key*", "*apikey*", "cookie")
"""Keys that are masked whatever the application declares."""


def patterns_of(entries: Iterable[CatalogEntry]) -> tuple[str, ...]:
    """The patterns in force: ours, and those that applications wrote to the catalogue."""
    declared: list[str] = []
    for entry in entries:
        given = entry.declaration.get("redact")
        if isinstance(given, list | tuple):
            declared += [p for p in cast("Sequence[object]", given) if isinstance(p, str)]
    return tuple(dict.fromkeys([*ALWAYS, *declared]))


def redact(text: str, patterns: Sequence[str]) -> str:
    """`text`, a JSON document, with the values of matching keys masked at every depth. Keys match without their case.

    A document nested too deep to be walked is masked whole.
    """
    lowered = tuple(p.lower() for p in patterns)
    try:
        return json.dumps(_masked(json.loads(text), lowered), ensure_ascii=False)
    except RecursionError:
        return json.dumps(MASK, ensure_ascii=False)


def _masked(value: object, patterns: Sequence[str]) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {
            key: MASK if any(fnmatchcase(key.lower(), p) for p in patterns) else _masked(inner, patterns)
            for key, inner in fields.items()
        }
    if isinstance(value, list):
        return [_masked(inner, patterns) for inner in cast("list[object]", value)]
    return value
