"""What a worker needs of an application; the composition root itself stays out of its sight."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ultijobs._execution.host import Handler
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import CatalogEntry

__all__ = ["Application"]


class Declared(Handler, Protocol):
    """A job of the application's registry."""

    @property
    def queue(self) -> str: ...


class Application(Protocol):
    """The part of `App` that a worker uses."""

    @property
    def driver(self) -> Driver: ...
    @property
    def opened(self) -> bool: ...
    async def open(self, role: str = "app") -> None: ...
    async def close(self) -> None: ...
