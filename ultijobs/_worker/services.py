"""The services of a worker process: what the application's lifespan yields, for as long as the process works."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final

from ultijobs._log import emit
from ultijobs.errors import LifespanFailed

__all__ = ["Services"]


class Services:
    """Enters `lifespan` for a block; None without one. What it raises is logged, and `LifespanFailed`.

    It is told of what ends the block, and cannot make that undone.
    """

    def __init__(self, lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None, worker_id: str) -> None:
        self._lifespan: Final = lifespan
        self._worker_id: Final = worker_id
        self._entered: AbstractAsyncContextManager[Any] | None = None

    async def __aenter__(self) -> Any:
        if self._lifespan is None:
            return None
        try:
            entered = self._lifespan()
            services = await entered.__aenter__()
        except Exception as error:
            raise self._failed("before the first job", error) from error
        self._entered = entered
        return services

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is None:
            return
        try:
            await self._entered.__aexit__(kind, error, trace)
        except Exception as raised:
            if raised is not error:
                raise self._failed("after the last job", raised) from raised

    def _failed(self, when: str, error: Exception) -> LifespanFailed:
        told = f"App(lifespan=…) raised {type(error).__qualname__} {when}: {error}"
        emit(logging.CRITICAL, "jobs.worker.lifespan-failed", told, exc_info=error, worker_id=self._worker_id)
        return LifespanFailed(told)
