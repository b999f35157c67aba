"""How a body learns that it is to end: readable from its task, from other loops and from threads."""

from __future__ import annotations

import asyncio
import threading
from typing import TypeAlias

from ultijobs.errors import UltijobsError

__all__ = ["StopSignal"]

_Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]

_waiting = threading.Lock()


class StopSignal:
    """Set once, when the attempt (or the step) is to end: a deadline, a cancel, a lost lease, a drain.

    `reason` is the error that says why. A signal of a step is set too when that of its attempt is.
    """

    __slots__ = ("_own", "_parent", "_waiters")

    def __init__(self, parent: StopSignal | None = None) -> None:
        self._parent = parent
        self._own: UltijobsError | None = None
        self._waiters: list[_Waiter] | None = None

    @property
    def reason(self) -> UltijobsError | None:
        """Why the body is to end; None while it may go on."""
        if self._own is not None:
            return self._own
        return None if self._parent is None else self._parent.reason

    def is_set(self) -> bool:
        """True when the body is to end. Cheap enough for an inner loop, from any thread."""
        return self.reason is not None

    def raise_if_set(self) -> None:
        """Raises the reason when the body is to end."""
        reason = self.reason
        if reason is not None:
            raise type(reason)(reason.cause, fix=reason.fix, meta=reason.meta)

    async def wait(self) -> UltijobsError:
        """Returns the reason as soon as there is one."""
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        self.enter(waiter)
        try:
            while (reason := self.reason) is None:
                await waiter[1].wait()
            return reason
        finally:
            self.leave(waiter)

    def set(self, reason: UltijobsError) -> None:
        """Tells the body to end; only the first reason counts."""
        with _waiting:
            if self._own is not None:
                return
            self._own = reason
            waiters = list(self._waiters or ())
        for loop, event in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def enter(self, waiter: _Waiter) -> None:
        """Lists who is to be woken, here and up to the attempt's own signal."""
        with _waiting:
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(waiter)
        if self._parent is not None:
            self._parent.enter(waiter)

    def leave(self, waiter: _Waiter) -> None:
        with _waiting:
            if self._waiters is not None and waiter in self._waiters:
                self._waiters.remove(waiter)
        if self._parent is not None:
            self._parent.leave(waiter)
