"""The event loop of a role: the quickest there is; no handler ends it, or its threads, for all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

__all__ = ["new_loop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Shared(asyncio.AbstractEventLoop):
    """Makes default threads anew after they were closed, where a loop of the standard library refuses every call.

    A task that stops the loop fails instead: what ends a role is its own end.
    """

    _threads: Executor | None = None

    def set_default_executor(self, executor: Executor) -> None:
        self._threads = executor

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        if executor is None:
            executor = self._threads = self._threads or ThreadPoolExecutor(thread_name_prefix="asyncio")
        return super().run_in_executor(executor, func, *args)  # pyright: ignore[reportAbstractUsage] - of the loop mixed into

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as the standard library has it
        """Ends the threads of now, after what they are at or the `timeout`."""
        threads, self._threads = self._threads, None
        if threads is None:
            return
        waiting = ThreadPoolExecutor(1)
        try:
            async with asyncio.timeout(timeout):
                await super().run_in_executor(waiting, threads.shutdown)  # pyright: ignore[reportAbstractUsage] - likewise
        except TimeoutError:
            threads.shutdown(wait=False)
        finally:
            waiting.shutdown(wait=False)

    def stop(self) -> None:
        """Ends `run_until_complete`, which asks from a callback. Raises `RuntimeError` in a task."""
        if asyncio.current_task(self) is not None:
            raise RuntimeError("a task called stop() on the event loop, which other jobs run on as well")
        super().stop()  # pyright: ignore[reportAbstractUsage] - of the loop mixed into


def new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - there is none for Windows
    except ModuleNotFoundError:
        return _renewing(asyncio.SelectorEventLoop)
    return _renewing(uvloop.Loop)


def _renewing(base: type[asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    made: asyncio.AbstractEventLoop = type("Loop", (_Shared, base), {})()
    return made
