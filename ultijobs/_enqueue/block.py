"""A transaction bound for a block of code, sync or async."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from ultijobs._enqueue.transactions import bind

__all__ = ["TransactionBlock"]


class TransactionBlock:
    """For `async with` and for `with`: enqueues inside join the transaction, which stays the caller's to end."""

    def __init__(self, application: object, tx: Any) -> None:
        self._application = application
        self._tx = tx
        self._binding: AbstractContextManager[None] | None = None

    async def __aenter__(self) -> None:
        self._enter(sync=False)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit()

    def __enter__(self) -> None:
        self._enter(sync=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit()

    def _enter(self, *, sync: bool) -> None:
        self._binding = bind(self._application, self._tx, sync=sync)
        self._binding.__enter__()

    def _exit(self) -> None:
        if self._binding is not None:
            self._binding.__exit__(None, None, None)
