"""Hours in no time: a loop whose clock stands while anything can run, and jumps to the next timer when nothing can."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Does not wait; what it would have waited has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for something that cannot come any more"
        ready = super().select(0)
        if not ready:
            self.passed += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.passed


def jumping(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work`, which must use neither threads nor sockets, on such a loop."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
