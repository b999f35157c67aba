"""How findings are worded: numbers with their noun, ages, commands for a shell."""

from __future__ import annotations

import shlex
from datetime import timedelta

from ultijobs import _durations
from ultijobs._queue.views import Count

__all__ = ["age", "line", "many"]


def many(number: int | Count, one: str, more: str | None = None) -> str:
    """`1 job`, `3 jobs`, `10,000+ jobs`."""
    value = number if isinstance(number, int) else number.value
    shown = f"{number:,}" if isinstance(number, int) else str(number)
    return f"{shown} {one if value == 1 else more or one + 's'}"


def age(span: timedelta) -> str:
    """Whole seconds: `1m30s`."""
    return _durations.render(timedelta(seconds=max(0, int(span.total_seconds()))))


def line(*words: str) -> str:
    """`ultijobs` and `words` as they are typed into a shell."""
    return shlex.join(["ultijobs", *words])
