"""Where the cockpit's data comes from: a protocol, and the live one on `Inspector`. Reads are one at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from ultijobs.inspection import (
    Action,
    ActOutcome,
    Inspector,
    Plan,
    PlanOptions,
    Target,
    TaskDetail,
    Unheard,
    Where,
)
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.reading import Reader
from ultijobs_tui.running import TaskRunner

__all__ = ["LiveSource", "Source", "listen", "title_of"]

_UPCOMING: Final = 10
_LISTEN_AGAIN: Final = 30.0
"""Seconds."""


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
    def runs_tasks(self) -> bool:
        """True when the application's code is at hand, which alone says which jobs a task asks for."""
        ...

    @property
    def live(self) -> bool:
        """False when nothing moves by itself and frames are fed by hand."""
        ...

    async def fetch(self, needs: Needs) -> Frame: ...
    async def find(self, ref: str) -> UUID: ...
    async def unheard(self, where: Where) -> list[Unheard]: ...
    async def input(self, id: UUID) -> str | None: ...
    async def task(self, name: str) -> TaskDetail: ...
    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan: ...
    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome: ...
    def subscribe(self, on_hint: Callable[[], None]) -> AbstractAsyncContextManager[None]: ...


async def listen(source: Source, on_hint: Callable[[], None]) -> None:
    """Takes hints until cancelled. They make refreshes earlier; without them the interval is the truth."""
    while True:
        try:
            async with source.subscribe(on_hint):
                await asyncio.Event().wait()
        except Exception:  # noqa: BLE001 - a hint is no promise; polling goes on and tells what is wrong
            await asyncio.sleep(_LISTEN_AGAIN)


class LiveSource:
    """The queue itself. One part that fails is told in `failures`; a lost connection fails the whole frame."""

    def __init__(
        self,
        inspector: Inspector,
        *,
        tasks: TaskRunner | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tasks` runs the application's tasks, where its code is at hand."""
        self._inspector = inspector
        self._tasks = tasks
        self._reader = Reader(inspector, monotonic)

    @property
    def title(self) -> str:
        return title_of(self._inspector.driver.url)

    @property
    def actor(self) -> str:
        return self._inspector.actor

    @property
    def runs_tasks(self) -> bool:
        return self._tasks is not None

    @property
    def live(self) -> bool:
        return True

    async def fetch(self, needs: Needs) -> Frame:
        return await self._reader.read(needs)

    async def find(self, ref: str) -> UUID:
        return await self._inspector.find(ref)

    async def unheard(self, where: Where) -> list[Unheard]:
        return await self._inspector.unheard(where)

    async def input(self, id: UUID) -> str | None:
        return (await self._inspector.job(id, with_input=True)).input

    async def task(self, name: str) -> TaskDetail:
        return await self._inspector.task(name, upcoming=_UPCOMING)

    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan:
        if action is Action.RUN_TASK and self._tasks is not None and isinstance(target, Target):
            return await self._inspector.plan_task(
                target.task or "", await self._tasks.foresee(target.task or ""), options
            )
        return await self._inspector.plan(action, target, options)

    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome:
        self._reader.stale()
        if plan.action is Action.RUN_TASK and (tasks := self._tasks) is not None:
            return await self._inspector.apply_task(plan, lambda: tasks.enqueue(plan.target.task or ""))
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
