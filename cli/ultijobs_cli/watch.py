"""`--watch`: the same look again and again, until ctrl-c."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ultijobs.errors import CliBadFlag
from ultijobs_cli.command import Invocation
from ultijobs_cli.render import ReaderLeft
from ultijobs_cli.report import Report

__all__ = ["watching"]

EVERY: Final = 2.0
"""Seconds between two looks."""


async def watching(call: Invocation, look: Callable[[], Awaitable[Report]], *, watch: bool) -> Report:
    """One look; with `watch`, looks until the process is interrupted."""
    if not watch:
        return await look()
    if call.flags.json:
        raise CliBadFlag(
            "--watch prints many answers, --json promises exactly one", fix="leave one of them out, or use --json-lines"
        )
    while True:
        report = await look()
        try:
            call.screen.again(report)
        except ReaderLeft:
            return Report("nobody reads any more")
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # A library below may lose the interruption that meets its answer; the task remembers that it was asked.
            raise asyncio.CancelledError
        await asyncio.sleep(EVERY)
