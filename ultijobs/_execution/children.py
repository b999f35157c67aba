"""Tasks that a handler created: they end with the attempt, before it is settled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ultijobs._execution.ending import log
from ultijobs._queue.claims import ClaimedJob
from ultijobs._steps.context import RUNNING, Context
from ultijobs._steps.ending import Contained

__all__ = ["end_children", "tracked"]


@contextmanager
def tracked(loop: asyncio.AbstractEventLoop) -> Generator[None, None, None]:
    """While it lasts, tasks that are made on `loop` inside of an attempt belong to that attempt."""
    before = loop.get_task_factory()

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        context = options.get("context")
        running = RUNNING.get(None) if context is None else context.get(RUNNING)
        if running is not None:
            coro = Contained(coro)
        task: Any = asyncio.Task(coro, loop=loop, **options) if before is None else before(loop, coro, **options)
        if running is not None:
            running.adopt(task)
        return task

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(before)


async def end_children(context: Context[Any], job: ClaimedJob, grace: float) -> None:
    """Cancels the attempt's tasks and waits for them, at most `grace` seconds; they may make further ones meanwhile."""
    until = time.monotonic() + grace
    told: set[asyncio.Task[Any]] = set()
    while context.children:
        tasks = set(context.children)
        for task in tasks - told:
            task.cancel()
        told |= tasks
        left = until - time.monotonic()
        if left <= 0:
            break
        done, _ = await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                log(
                    logging.WARNING,
                    "jobs.children.failed",
                    f"a task that the handler left behind failed: {error!r:.500}",
                    job,
                )
        # `discard` is a callback of its own turn.
        context.children -= done
    if context.children:
        log(
            logging.WARNING,
            "jobs.children.abandoned",
            f"{len(context.children)} tasks that the handler left behind ignore their cancellation",
            job,
        )
    context.children = None
