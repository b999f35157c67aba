"""Runs the tasks of an application that was imported: what each would ask for, and asking for it."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ultijobs.errors import AppUnusable, DeclarationUnknown, UltijobsError
from ultijobs.inspection import Enqueued
from ultijobs_cli.connect import within_reach

if TYPE_CHECKING:
    from ultijobs import App
    from ultijobs._definitions.task import TaskHandle

__all__ = ["AppTasks"]


class AppTasks:
    """Opens the application with the first task that runs; `close` ends what was opened."""

    def __init__(self, app: App[Any], role: str) -> None:
        self._app = app
        self._role = role
        self._opened = False

    async def jobs(self, name: str) -> list[tuple[str, str]]:
        """The name and the queue of each job that the task would ask for now.

        Raises `DeclarationUnknown`, and `AppUnusable` when the task's own function raises.
        """
        from ultijobs._definitions.entries import entries  # noqa: PLC0415 - the commands that read do without pydantic

        task = self._task(name)
        try:
            with self._app.ambient():
                requests = await entries(task, datetime.now(ZoneInfo(task.tz)))
        except UltijobsError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise AppUnusable(
                f"task {name} raised {type(error).__qualname__}: {error} ({last.filename}:{last.lineno})",
                fix="correct the function that the cause names",
            ) from error
        return [(request.handle.name, request.handle.queue) for request in requests]

    async def foresee(self, task: str) -> Mapping[str, int]:
        return Counter(queue for _, queue in await self.jobs(task))

    async def enqueue(self, task: str) -> Sequence[Enqueued]:
        """Outside of any transaction on purpose, also where the application's own code must be in one."""
        handle = self._task(task)
        await self.open()
        with self._app.ambient():
            return await handle.enqueue(tx=False)

    async def open(self) -> None:
        if not self._opened:
            async with within_reach(self._app.driver.url):
                await self._app.open(self._role)
            self._opened = True

    async def close(self) -> None:
        if self._opened:
            self._opened = False
            async with asyncio.timeout(1):
                await self._app.close()

    def _task(self, name: str) -> TaskHandle:
        tasks = self._app.registry.tasks
        task = tasks.get(name)
        if task is None:
            near = get_close_matches(name, tasks, 1, 0.4)
            raise DeclarationUnknown(
                f"the application declares no task {name!r:.100}; it has {', '.join(tasks) or 'none'}",
                fix=f"ultijobs tasks run {near[0]}" if near else "add its module to App(tasks=[…])",
            )
        return task
