"""The outbox of an application: rows are staged on the caller's connection, and none is opened for it."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ultijobs._connect import driver_for
from ultijobs._queue.outbox import OutboxStore

__all__ = ["Staging"]


class Staging:
    """Made at the first use, so that an application which stages nothing imports no driver for it."""

    def __init__(self, url: str, schema: str) -> None:
        self._url: Final = url
        self._schema: Final = schema

    @cached_property
    def store(self) -> OutboxStore:
        return driver_for(self._url, self._schema).outbox
