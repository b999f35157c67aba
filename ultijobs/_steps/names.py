"""Step names as they are stored: a user's own, and those derived from a sleep's duration, which never meet."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ultijobs._durations import Duration, parse, render
from ultijobs._text import unstorable
from ultijobs.errors import Invariant

__all__ = ["DerivedNames", "stored_name"]

LONGEST_NAME: Final = 500
_DERIVED: Final = re.compile("(?:run:)*sleep:")


def stored_name(name: object) -> str:
    """The record's name for a step that a user called `name`.

    A name that looks like a derived one gets the prefix `run:`. Raises `Invariant` for what is no name.
    """
    stored = _stored(name) if isinstance(name, str) and len(name) <= LONGEST_NAME else None
    if stored is None:
        raise Invariant(
            f"the step name {name!r:.100} is not a text of 1 to {LONGEST_NAME} storable characters",
            fix='name the step, such as step.run("charge", …)',
        )
    return stored


@lru_cache(maxsize=4_096)
def _stored(name: str) -> str | None:
    if not name or unstorable(name) is not None:
        return None
    return f"run:{name}" if _DERIVED.match(name) else name


class DerivedNames:
    """Names of unnamed sleeps in one attempt: `sleep:<duration>`, the second of the same duration with `#2`."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def next(self, duration: Duration) -> str:
        text = duration.strip() if isinstance(duration, str) else render(parse(duration, what="step.sleep"))
        count = self._used[text] = self._used.get(text, 0) + 1
        return f"sleep:{text}" if count == 1 else f"sleep:{text}#{count}"
