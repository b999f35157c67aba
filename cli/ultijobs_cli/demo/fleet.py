"""The demo's workers: one supervisor process with its children, started as an operator would start them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

__all__ = ["Fleet", "fleet"]

GRACE = 5.0
"""Seconds that running jobs get when the workers drain."""
PATIENCE = 30.0
"""Seconds until workers that do not drain are killed; they end with their supervisor."""


class Fleet:
    """A running `ultijobs worker` and its end."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def drain(self) -> int:
        """Asks the workers to drain and waits; a supervisor that outlives `PATIENCE` is killed. The exit code."""
        if self.process.returncode is not None:
            return self.process.returncode
        self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.process.wait()
        except TimeoutError:
            os.killpg(self.process.pid, signal.SIGKILL)
            return await self.process.wait()


@asynccontextmanager
async def fleet(url: str, *, workers: int, log: Path) -> AsyncGenerator[Fleet]:
    """Starts the workers in a process group of their own, so that ctrl-c reaches the demo alone."""
    command = [sys.executable, "-m", "ultijobs_cli", "worker", "--app", "ultijobs_cli.demo.app:app"]
    command += ["--processes", str(workers), "--concurrency", "8", "--lease", "5s", "--grace", f"{GRACE}s"]
    environment = os.environ | {"ULTIJOBS_DATABASE_URL": url}
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    running = Fleet(process, log)
    try:
        yield running
    finally:
        await running.drain()
