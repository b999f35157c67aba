"""What `count()` of a backfill answers, sync or async, checked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ultijobs.errors import Invariant

__all__ = ["counted"]


async def counted(count: Callable[[], int | Awaitable[int]], what: str) -> int:
    """The rows that remain; a sync `count` is called in a thread.

    Raises what it raises, and `Invariant` for an answer that is no whole number of 0 or more.
    """
    answer: Any = count() if inspect.iscoroutinefunction(count) else await asyncio.to_thread(count)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, bool) or not isinstance(answer, int) or answer < 0:
        raise Invariant(
            f"{what}: count() answered {answer!r:.100}", fix="let count= answer a whole number of 0 or more"
        )
    return answer
