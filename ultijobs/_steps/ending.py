"""Exceptions that end a process, raised by the code of a job: they end what raised them, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Final

__all__ = ["Contained", "contained", "runs_in"]


def contained(error: BaseException, what: str) -> BaseException:
    """An ordinary exception in place of one that ends a process; any other as it is."""
    if isinstance(error, SystemExit):
        ordinary = RuntimeError(f"{what} called sys.exit({error.code!r})")
    elif isinstance(error, KeyboardInterrupt | GeneratorExit):
        ordinary = RuntimeError(f"{what} raised {type(error).__qualname__}")
    else:
        return error
    ordinary.__cause__ = error
    return ordinary.with_traceback(error.__traceback__)


def runs_in(task: asyncio.Task[Any] | None) -> bool:
    """True while the loop runs `task`; False when its coroutine is closed from outside, and must not go on."""
    try:
        return task is not None and asyncio.current_task() is task
    except RuntimeError:
        return False


class Contained(Coroutine[Any, Any, Any]):
    """A coroutine for a task of its own: a loop would end with a `sys.exit` that one of its tasks lets out.

    A `GeneratorExit` would close whatever waits for the task, instead of being raised there.
    """

    def __init__(self, coro: Coroutine[Any, Any, Any]) -> None:
        self._coro: Final = coro

    def send(self, value: Any, /) -> Any:
        try:
            return self._coro.send(value)
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise contained(error, "a task of the handler") from error

    def throw(self, *error: Any) -> Any:
        try:
            return self._coro.throw(*error)
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as ending:
            if ending in error or type(ending) in error:
                raise
            raise contained(ending, "a task of the handler") from ending

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        # Its frame, its code and its name, for whoever shows the task.
        return getattr(self._coro, name)
