"""`Worker`: claims an application's jobs, runs them and settles them, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from typing import Any, Final

from ultijobs._coalesce import Backoff
from ultijobs._durations import Duration
from ultijobs._log import emit
from ultijobs._queue.records import WorkerOrder
from ultijobs._worker.application import Application
from ultijobs._worker.crew import Crew
from ultijobs._worker.drain import drain, hand_back_rest
from ultijobs._worker.settings import settings
from ultijobs._worker.stop import PARENT_FD, Stop, StopRequest, on_parent_death
from ultijobs._worker.trouble import Trouble
from ultijobs.errors import DriverUnavailable

__all__ = ["Worker"]

STARTS_WITHIN: Final = Backoff(first=0.2, most=2.0)


class Worker:
    """Runs the jobs that `app` registers, at most `concurrency` at a time over all its queues.

    A claimed job is held by a lease that is renewed at a third of `lease`, from a thread of its own: it survives a
    handler that blocks the event loop. When the process dies the lease lapses and another worker delivers the job again,
    as the next attempt. `queues` None serves every queue that the jobs declare. `name` is shown as `worker_id` and
    decides nothing. Raises `Invariant` or `DurationInvalid` for options that make no sense.
    """

    def __init__(
        self,
        app: Application,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 20,
        lease: Duration = "30s",
        grace: Duration = "25s",
        poll: Duration = "1s",
        name: str | None = None,
    ) -> None:
        self._app = app
        self._settings = settings(
            queues=queues, concurrency=concurrency, lease=lease, grace=grace, poll=poll, name=name
        )
        self._trouble = Trouble(self._settings.worker_id)
        self._stop = StopRequest()

    @property
    def worker_id(self) -> str:
        return self._settings.worker_id

    def stop(self, *, now: bool = False) -> None:
        """Drains: what runs has the grace to end, the rest is handed back; with `now` all is handed back at once.

        Safe from any thread and signal handler, also before `run`: then it ends as soon as it has begun.
        """
        self._stop.ask(Stop.NOW if now else Stop.DRAIN)

    async def run(self) -> None:
        """Works until `stop`, SIGTERM or ctrl-c; a second signal hands back at once and raises `KeyboardInterrupt`.

        Waits for a database that is away. Raises `SchemaOutdated` for tables that do not fit this release,
        `NotImplementedYet` or `JobConcurrencyUnenforceable` for declarations that cannot be kept; then nothing was
        claimed.
        """
        parent = os.environ.get(PARENT_FD)
        with self._stop.on_signals(), on_parent_death(self._stop, None if parent is None else int(parent)):
            async with contextlib.AsyncExitStack() as stack:
                crew = await self._start(stack)
                if crew is not None:
                    await self._work(crew)
        if self._stop.stage is Stop.NOW:
            raise KeyboardInterrupt

    async def run_until_idle(self) -> None:
        """Runs what is due, and what becomes due by that, until nothing of its names runs or can be claimed.

        What is delayed, suspended, paused or at its cap stays. Never waits for time to pass.
        """
        async with contextlib.AsyncExitStack() as stack:
            crew = await self._start(stack)
            if crew is None:
                return
            while self._stop.stage is Stop.NO:
                await crew.reaper.once()
                await crew.claimer.run_until_idle()
                if not await self._elsewhere(crew):
                    break
                await asyncio.sleep(self._settings.poll.total_seconds())
            await hand_back_rest(crew)
            await crew.settler.drained()
