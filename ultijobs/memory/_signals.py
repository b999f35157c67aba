"""Who listens to a store in memory, on whatever loop and thread that is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from ultijobs._queue.telling import Signal, SignalKind

__all__ = ["Signals"]


class Signals:
    """Delivers each hint on the subscriber's own loop. The store's lock guards the list."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[Signal], None]]] = {}

    def send(self, kind: SignalKind, value: str) -> None:
        signal = Signal(kind, value)
        for loop, listener in list(self._listeners.values()):
            # A loop that closed without leaving its subscription has nobody left to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(listener, signal)

    def count(self) -> int:
        return len(self._listeners)

    @contextlib.asynccontextmanager
    async def subscribed(self, on_signal: Callable[[Signal], None]) -> AsyncGenerator[None]:
        token = object()
        self._listeners[token] = (asyncio.get_running_loop(), on_signal)
        try:
            yield
        finally:
            self._listeners.pop(token, None)
