"""Waits for a database that is away instead of failing a pass that has come far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ultijobs._coalesce import Backoff
from ultijobs.errors import DriverUnavailable

__all__ = ["patiently"]

T = TypeVar("T")

_BACKOFF: Final = Backoff(first=0.1, most=1.0)


async def patiently(call: Callable[[], Awaitable[T]], *, within: float | None = None) -> T:
    """What `call` answers, tried again while the database is away.

    Without a limit that ends with the claim, whose lease runs out meanwhile: the attempt is cancelled then. `within`
    seconds after the first failure the error is raised.
    """
    began: float | None = None
    failures = 0
    while True:
        try:
            return await call()
        except DriverUnavailable:
            now = time.monotonic()
            began = now if began is None else began
            if within is not None and now - began >= within:
                raise
            failures += 1
            await asyncio.sleep(_BACKOFF.after(failures))
