"""Masks values of a payload whose key matches a pattern, before anything is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final, cast

from ultijobs._queue.steps import StepRecord
from ultijobs._queue.telling import CatalogEntry

__all__ = ["ALWAYS", "MASK", "patterns_of", "redact", "redact_output"]

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

    Where none matches it is left as it is. A document nested too deep to be walked is masked whole.
    """
    lowered = tuple(p.lower() for p in patterns)
    try:
        value = json.loads(text)
        masked = _masked(value, lowered)
        return text if masked == value else json.dumps(masked, ensure_ascii=False)
    except RecursionError:
        return json.dumps(MASK, ensure_ascii=False)


def redact_output(step: StepRecord, patterns: Sequence[str]) -> StepRecord:
    """The step with its output as `redact` leaves it; the step's own name counts as the key of the whole."""
    if step.output is None:
        return step
    named = any(fnmatchcase(step.name.lower(), pattern.lower()) for pattern in patterns)
    return replace(step, output=json.dumps(MASK, ensure_ascii=False) if named else redact(step.output, patterns))


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
