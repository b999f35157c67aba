"""Says of an empty list which names of its filter nothing is known under."""

from __future__ import annotations

from collections.abc import Sized

from ultijobs.inspection import Inspector, Where

__all__ = ["strangers"]


async def strangers(api: Inspector, where: Where, rows: Sized) -> list[str]:
    """Lines for a person; none where there are rows, or the filter names nothing that could be mistyped."""
    return [] if len(rows) else [str(each) for each in await api.unheard(where)]
