"""Names that a filter asks for and nothing is known under: why a list is empty, when a name was mistyped."""

from __future__ import annotations

import asyncio
from typing import Final

from ultijobs.errors import UltijobsError
from ultijobs.inspection import Where
from ultijobs_tui.source import Source

__all__ = ["strangers"]

_WITHIN: Final = 2.0
"""Seconds for the look-up; later it is not told."""


async def strangers(source: Source, where: Where) -> tuple[str, ...]:
    """What to say of each such name; nothing where that cannot be found out."""
    try:
        async with asyncio.timeout(_WITHIN):
            return tuple(map(str, await source.unheard(where)))
    except (UltijobsError, TimeoutError):
        return ()
