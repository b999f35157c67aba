"""Daemon threads for code that blocks: sized for a worker, never joined at exit, apart from the loop's own executor."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Final

from ultijobs._steps.ending import contained
from ultijobs._steps.store import Firm
from ultijobs.errors import Aborted

__all__ = ["Threads"]

IDLE_SECONDS: Final = 30.0


class Threads:
    """At most `size` threads, started when needed, gone after some idle time.

    A function that never returns keeps its thread but never the process: an executor of the standard library would wait
    for it at exit.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waited: set[Firm[Any]] = set()
        self._alive = 0
        self._free = 0

    def run(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> Firm[Any]:
        """Calls `call` in a thread; the future, on `loop`, has what it returned or raised and cannot be cancelled."""
        future: Firm[Any] = Firm(loop=loop)
        self._waited.add(future)
        future.add_done_callback(self._waited.discard)

        def work() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = call()
            except StopIteration as stop:
                error = RuntimeError("the function raised StopIteration")
                error.__cause__ = stop
            except BaseException as raised:  # noqa: BLE001 - whatever it is goes to the one who waits
                error = contained(raised, "the function")
            try:
                loop.call_soon_threadsafe(_complete, future, value, error)
            except RuntimeError:
                # The loop is closed: nobody waits any more.
                return

        with self._lock:
            self._work.put(work)
            if self._free:
                self._free -= 1
            elif self._alive < self._size:
                self._alive += 1
                threading.Thread(target=self._serve, name=f"ultijobs-{self._alive}", daemon=True).start()
        return future

    def release(self) -> None:
        """Ends every wait for a function that still runs, so that the loop can be closed without it."""
        for future in list(self._waited):
            future.answer(Aborted("the worker has stopped and does not wait for this function any more"))

    def _serve(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._work.empty():
                        self._alive -= 1
                        self._free = max(0, self._free - 1)
                        return
                continue
            work()
            del work
            with self._lock:
                if self._work.empty():
                    self._free += 1


def _complete(future: Firm[Any], value: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
