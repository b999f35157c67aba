"""How people refer to one row: by its whole id, or by the end of it as lists show it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs.errors import Invariant

__all__ = ["only", "tail_of", "too_short", "whole_id"]

_DIGITS_OF_AN_ID: Final = 32
_FEWEST: Final = 6
"""Digits of a tail: what lists show of an id."""
_HEX: Final = re.compile(r"[0-9a-f]+")


def whole_id(ref: str) -> UUID | None:
    """The id that `ref` spells in full; None for anything else."""
    digits = _digits(ref)
    return UUID(digits) if digits is not None and len(digits) == _DIGITS_OF_AN_ID else None


def tail_of(ref: str) -> str | None:
    """The last hex digits of an id, at least 6 of them; None for anything else."""
    digits = _digits(ref)
    return digits if digits is not None and _FEWEST <= len(digits) < _DIGITS_OF_AN_ID else None


def too_short(ref: str) -> bool:
    """True for hex digits that are too few to be a tail."""
    digits = _digits(ref)
    return digits is not None and len(digits) < _FEWEST


def only(ref: str, found: Sequence[UUID]) -> UUID:
    """The one id among `found`, which is not empty. Raises `Invariant` when there are several."""
    if len(found) > 1:
        raise Invariant(
            f"{ref!r} is ambiguous: {', '.join(map(str, found))}",
            fix=f"give the whole id, such as {found[0]}",
        )
    return found[0]


def _digits(ref: str) -> str | None:
    digits = ref.strip().lower().removeprefix("…").replace("-", "")
    return digits if _HEX.fullmatch(digits) else None
