"""Where the cockpit's data comes from: a protocol, and the live one on `Inspector`. Reads are one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from ultijobs.inspection import (
    Action,
    ActOutcome,
    Inspector,
    Plan,
    PlanOptions,
    Target,
)
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.reading import Reader

__all__ = ["LiveSource", "Source", "title_of"]


class Source(Protocol):
    """What the cockpit needs: bounded reads, plans and acts."""

    @property
    def title(self) -> str:
        """Where the data is, without any password."""
        ...

    @property
    def actor(self) -> str:
        """Who acts, as the activity log keeps it."""
        ...

    @property
    def live(self) -> bool:
        """False when nothing moves by itself and frames are fed by hand."""
        ...

    async def fetch(self, needs: Needs) -> Frame: ...
    async def find(self, ref: str) -> UUID: ...
    async def input(self, id: UUID) -> str | None: ...
    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan: ...
    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome: ...
    def subscribe(self, on_hint: Callable[[], None]) -> AbstractAsyncContextManager[None]: ...


class LiveSource:
    """The queue itself. One part that fails is told in `failures`; a lost connection fails the whole frame."""

    def __init__(self, inspector: Inspector, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._inspector = inspector
        self._reader = Reader(inspector, monotonic)

    @property
    def title(self) -> str:
        return title_of(self._inspector.driver.url)

    @property
    def actor(self) -> str:
        return self._inspector.actor

    @property
    def live(self) -> bool:
        return True

    async def fetch(self, needs: Needs) -> Frame:
        return await self._reader.read(needs)

    async def find(self, ref: str) -> UUID:
        return await self._inspector.find(ref)

    async def input(self, id: UUID) -> str | None:
        return (await self._inspector.job(id, with_input=True)).input

    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan:
        return await self._inspector.plan(action, target, options)

    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome:
        self._reader.stale()
        return await self._inspector.apply(plan, on_progress=on_progress, stop=stop)

    def subscribe(self, on_hint: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        return self._inspector.driver.subscribe(lambda _signal: on_hint())


def title_of(url: str) -> str:
    """Host and database of an address, or its folder; an address that cannot be taken apart as it is."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "")
        port = f":{parts.port}" if parts.port not in {None, 5432} else ""
    except ValueError:
        return url
    if parts.scheme == "embedded":
        return url.partition(":")[2] or url
    where = f"{host.rstrip('/').removesuffix('/run').rsplit('/', 1)[-1]}{port}"
    return f"{where}/{parts.path.lstrip('/')}".strip("/") or url
