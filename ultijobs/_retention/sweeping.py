"""A sweep: batch after batch, shelf after shelf, with as much rest as work."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from ultijobs._queue.retention import Kept, RetentionStore, Shelf, Windows

__all__ = ["BATCH", "sweep"]

BATCH: Final = 500
_LEAST_PAUSE: Final = 0.01


async def sweep(
    store: RetentionStore,
    windows: Windows,
    *,
    shelves: tuple[Shelf, ...] = tuple(Shelf),
    swept: Callable[[Mapping[Kept, int]], bool] = lambda _: True,
) -> Counter[Kept]:
    """Removes what is over its time and says how much.

    `swept` is told what is gone so far after each batch that removed something; False ends the sweep there.
    """
    gone: Counter[Kept] = Counter()
    for shelf in shelves:
        after: str | None = None
        while True:
            began = time.monotonic()
            batch = await store.forget(shelf, windows, after=after, limit=BATCH)
            gone.update(batch.rows)
            if batch.rows and not swept(gone):
                return gone
            if batch.after is None:
                break
            after = batch.after
            await asyncio.sleep(max(_LEAST_PAUSE, time.monotonic() - began))
    return gone
