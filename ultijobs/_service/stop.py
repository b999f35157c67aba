"""Requests to stop: the first drains, the second hands back at once. They may come before there is a worker to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Generator
from collections.abc import Set as AbstractSet
from enum import IntEnum
from types import FrameType
from typing import Any, Final

__all__ = ["PARENT_FD", "Stop", "StopRequest", "end", "on_parent_death"]

CANCEL_AGAIN_AFTER: Final = 0.5
PARENT_FD: Final = "ULTIJOBS_PARENT_FD"
"""The environment variable that names the pipe on which a worker process sees its supervisor die."""


class Stop(IntEnum):
    """How far the stop was asked to go; it never goes back."""

    NO = 0
    DRAIN = 1
    NOW = 2


class StopRequest:
    """A stop that sticks: whoever looks at it later sees it too. `ask` is safe from signal handlers and threads."""

    def __init__(self) -> None:
        self._stage = Stop.NO
        self.interrupted = False
        """True when a second signal asked for it: the process ends as an interrupted one does."""
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def stage(self) -> Stop:
        return self._stage

    def ask(self, stage: Stop | None = None) -> None:
        """Asks for `stage`, or for one stage more than before."""
        wanted = Stop(min(self._stage + 1, Stop.NOW)) if stage is None else stage
        if wanted <= self._stage:
            return
        self._stage = wanted
        for loop, event in list(self._waiters):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

    async def at_least(self, stage: Stop) -> None:
        """Returns when the stop has gone so far."""
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        self._waiters.append(entry)
        try:
            while self._stage < stage:
                event.clear()
                await event.wait()
        finally:
            self._waiters.remove(entry)

    @contextlib.contextmanager
    def on_signals(self) -> Generator[None]:
        """SIGTERM and SIGINT ask here, in the main thread; elsewhere nothing is changed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.ask()
            self.interrupted = self._stage is Stop.NOW

        before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, former in before.items():
                signal.signal(number, former)


@contextlib.contextmanager
def on_parent_death(stop: StopRequest, fd: int | None) -> Generator[None]:
    """Drains when the other end of the pipe `fd` is closed: the supervisor that started this process is gone."""
    if fd is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def readable() -> None:
        loop.remove_reader(fd)
        stop.ask(Stop.DRAIN)

    loop.add_reader(fd, readable)
    try:
        yield
    finally:
        loop.remove_reader(fd)


async def end(tasks: AbstractSet[asyncio.Future[Any]]) -> None:
    """Cancels `tasks` until they have ended, whatever they end with.

    Once is not always enough: a driver or a library may lose a cancellation that meets its answer.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_AFTER)
    await asyncio.gather(*tasks, return_exceptions=True)
