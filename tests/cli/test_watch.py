"""`--watch` ends when it is interrupted, whatever the look was doing."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ultijobs_cli.command import Flags, Invocation
from ultijobs_cli.render import Screen
from ultijobs_cli.report import Report
from ultijobs_cli.watch import watching


async def test_an_interruption_that_a_look_loses_still_ends_the_watch() -> None:
    begun = asyncio.Event()

    async def loses_it() -> Report:
        with contextlib.suppress(asyncio.CancelledError):
            begun.set()
            await asyncio.sleep(60)
        return Report("looked")

    screen = Screen(json=False, json_lines=False)
    watch = asyncio.create_task(watching(Invocation("jobs ls", Flags(), screen), loses_it, watch=True))
    await begun.wait()
    watch.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await watch
