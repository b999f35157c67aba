"""Statements carry `$1`; libraries of the `pyformat` style are given `%(p1)s`. The one place that knows of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

__all__ = ["pyformat", "pyformat_values"]

_TOKEN: Final = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|\$(\d+)|%""")


@lru_cache(maxsize=256)
def pyformat(statement: str) -> str:
    """The statement with `%(p1)s` for `$1`; what is quoted keeps its dollars, and each percent sign is doubled."""
    return _TOKEN.sub(_replaced, statement)


def pyformat_values(values: Sequence[object]) -> dict[str, object]:
    """The values under the names that `pyformat` gives them."""
    return {f"p{number}": value for number, value in enumerate(values, 1)}


def _replaced(found: re.Match[str]) -> str:
    quoted, number = found[1], found[2]
    if quoted is not None:
        return str(quoted).replace("%", "%%")
    return "%%" if number is None else f"%(p{number})s"
