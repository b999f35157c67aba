"""What a task asks for at one occurrence: its function called, and its answer checked."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from ultijobs._definitions.handle import Request
from ultijobs.errors import Invariant

__all__ = ["Entries", "entries"]

Entries: TypeAlias = Callable[[datetime], Iterable[Request[Any]] | Awaitable[Iterable[Request[Any]]]]


class _Task(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def fn(self) -> Entries: ...
    @property
    def is_async(self) -> bool: ...


async def entries(
    task: _Task,
    occurrence: datetime,
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] = asyncio.to_thread,
) -> list[Request[Any]]:
    """The requests of `task` for `occurrence`, an aware time in its zone; a sync function is called `in_thread`.

    Raises what the function raises, and `Invariant` for an answer that holds anything but requests.
    """
    if task.is_async:
        given: Any = task.fn(occurrence)
        return _read(task.name, await given)
    context = contextvars.copy_context()
    # A generator runs only when it is read, so it is read in the thread too.
    found: list[Request[Any]] = await in_thread(lambda: context.run(lambda: _read(task.name, task.fn(occurrence))))
    return found


def _read(name: str, answer: Any) -> list[Request[Any]]:
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise Invariant(f"task {name} answered {answer!r:.100}, no requests", fix="return [handle.request(…), …]")
    return [_request(name, each) for each in answer]  # pyright: ignore[reportUnknownVariableType] - checked one by one


def _request(name: str, each: Any) -> Any:
    if not isinstance(each, Request):
        raise Invariant(f"task {name} answered {each!r:.100}, which is no request", fix="return [handle.request(…), …]")
    return each  # pyright: ignore[reportUnknownVariableType] - of any input
