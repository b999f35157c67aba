"""The end of a worker's work: no more claims, time for what runs, the rest handed back, everything settled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from ultijobs._execution.ending import Ending
from ultijobs._log import emit
from ultijobs._service.stop import Stop, StopRequest
from ultijobs._worker.crew import Crew
from ultijobs._worker.settings import Settings

__all__ = ["break_off", "drain", "hand_back_rest", "leave_behind"]

UNWINDS_WITHIN: Final = 1.0
"""How long cancelled bodies may take to end before their claims are handed back without them, in seconds."""
SETTLES_WITHIN: Final = 5.0


async def drain(crew: Crew, claiming: asyncio.Task[None], settings: Settings, stop: StopRequest) -> None:
    """Ends the crew's work: what runs has the grace, or none of it when told to stop now; then it is handed back."""
    running = len(crew.flying())
    emit(
        logging.INFO,
        "jobs.worker.draining",
        f"draining: {running} running, up to {settings.grace.total_seconds():g} s for them",
        worker_id=settings.worker_id,
    )
    crew.wind_up()
    crew.heartbeat.state = "draining"
    crew.heartbeat.hurry()
    at_once = asyncio.create_task(stop.at_least(Stop.NOW))
    ending: set[asyncio.Task[None]] = {claiming, *(flight.task for flight in crew.flying() if flight.task is not None)}
    try:
        deadline = asyncio.get_running_loop().time() + settings.grace.total_seconds()
        while ending and stop.stage < Stop.NOW:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.wait({*ending, at_once}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            ending = {task for task in ending if not task.done()}
    finally:
        at_once.cancel()
    claiming.cancel()
    await hand_back_rest(crew)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLES_WITHIN):
            await crew.settler.drained()


async def break_off(crew: Crew) -> None:
    """Ends the work of a process whose tasks a job has cancelled: each attempt ends as that has made it end.

    What does not end, or cannot be settled any more, lapses with its lease: that job uses up its attempts.
    """
    flying = crew.flying()
    names = ", ".join(sorted({flight.job.name for flight in flying})) or "none"
    emit(
        logging.CRITICAL,
        "jobs.worker.cancelled",
        f"every task of this process was cancelled, by one of the jobs that run here: {names}; the process ends",
        name=flying[0].job.name if len(flying) == 1 else None,
        job_id=flying[0].job.id if len(flying) == 1 else None,
        worker_id=crew.identity.worker_id,
    )
    crew.claimer.stop()
    tasks = [flight.task for flight in flying if flight.task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=UNWINDS_WITHIN)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLES_WITHIN):
            await crew.settler.drained()


async def hand_back_rest(crew: Crew) -> None:
    """Cancels every body that still runs and returns its claim; one that does not end is returned without waiting."""
    rest = crew.flying()
    for flight in rest:
        flight.body.cancel(Ending.DRAIN)
    tasks = [flight.task for flight in rest if flight.task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=UNWINDS_WITHIN)
    for flight in crew.flying():
        crew.hand_back(flight)


def leave_behind(crew: Crew) -> None:
    """Lets the loop end without the bodies that do not: a thread cannot be stopped, a coroutine may refuse to."""
    for flight in crew.flying():
        for task in {*flight.body.tasks, flight.task}:
            if task is not None and not task.done():
                # Else `asyncio.run` would wait for them, and the process could not end; asyncio has no public way.
                asyncio.tasks._unregister_task(task)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                setattr(task, "_log_destroy_pending", False)  # noqa: B010 - asyncio's own switch, unknown to its stubs
