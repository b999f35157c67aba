"""The pace of an act: so many rows, then a pause."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from ultijobs import _durations
from ultijobs.errors import DurationInvalid

__all__ = ["parse_pace"]

_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_PACE: Final = re.compile(r"(\d{1,6})\s*/\s*(.+)")


def parse_pace(text: str) -> tuple[int, timedelta]:
    """`500/1s` as rows and the pause after them; `500/s` says the same, and so does `500/1`.

    Raises `DurationInvalid`.
    """
    found = _PACE.fullmatch(text.strip())
    if found is None or int(found[1]) < 1:
        raise DurationInvalid(f"{text!r:.100} is not a pace", fix="write 500/1s")
    span = f"1{found[2]}" if found[2].isalpha() else found[2]
    try:
        pause = _durations.parse(float(span) if _NUMBER.fullmatch(span) else span, what="the pace")
    except DurationInvalid as error:
        raise DurationInvalid(f"{text!r:.100} is not a pace", fix="write 500/1s") from error
    return int(found[1]), pause
