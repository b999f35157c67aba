"""Waiting for a fact, with a deadline, in place of sleeping for a while."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    fact: Callable[[], Awaitable[T] | T], *, within: float = 10.0, every: float = 0.02, that: str = ""
) -> T:
    """The first truthy answer of `fact` (sync or async); fails with the last one when the time is up."""
    deadline = time.monotonic() + within
    while True:
        answer = fact()
        value: T = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {that or fact}; the last answer was {value!r}")
        await asyncio.sleep(every)
