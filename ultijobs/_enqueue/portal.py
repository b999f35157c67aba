"""An event loop on a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

__all__ = ["Portal", "wait"]

T = TypeVar("T")

_STOP_S: Final = 5.0


class _Loop(asyncio.SelectorEventLoop):
    """Counts as closed in every process but the one that made it.

    A forked child shares the parent's selector: what is finalised there would unregister itself in the parent.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        super().__init__()

    def is_closed(self) -> bool:
        return self._process != os.getpid() or super().is_closed()


class Portal:
    """Runs coroutines for other threads. The thread never keeps the process alive."""

    def __init__(self) -> None:
        self.loop: Final[asyncio.AbstractEventLoop] = _Loop()
        self._thread = threading.Thread(target=self._run, name="ultijobs-sync", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of `work`, for a thread that waits."""
        return wait(work, self.loop)

    def stop(self, last: Coroutine[Any, Any, object] | None = None) -> None:
        """Runs `last`, then ends the loop and its thread."""
        if self.loop.is_closed() or threading.current_thread() is self._thread:
            if last is not None:
                last.close()
            return
        try:
            if last is not None:
                asyncio.run_coroutine_threadsafe(last, self.loop).result(_STOP_S)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            pending = asyncio.all_tasks(self.loop)
            for task in pending:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


def wait(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Runs `work` on a loop of another thread and waits; an interrupt of the waiter cancels the work."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
