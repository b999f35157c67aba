"""One due task, from its occurrences to the jobs in the queue; whatever goes wrong stays with that task."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any, Final

from ultijobs import _settings, _text
from ultijobs._definitions.ambient import bound
from ultijobs._definitions.calendar import Calendar
from ultijobs._definitions.entries import entries
from ultijobs._definitions.handle import Request
from ultijobs._definitions.task import TaskHandle
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._queue.schedule import Dispatch, Lapse, Leader, SlotOutcome
from ultijobs._scheduler.application import Application
from ultijobs._scheduler.faults import Faults
from ultijobs._scheduler.filling import jobs_of
from ultijobs._scheduler.turns import COUNTED, Turn, turns
from ultijobs._service.stop import end
from ultijobs._service.trouble import Trouble
from ultijobs._steps.threads import Threads
from ultijobs._tracing import producing
from ultijobs.errors import DriverUnavailable, TimedOut, UltijobsError

__all__ = ["Firing"]

ANSWERS_WITHIN: Final = 60.0
"""Seconds that the function of a task has for one occurrence."""
THREADS: Final = 16


class Firing:
    """Calls the functions of tasks and dispatches what they ask for; shared by all tasks of a scheduler."""

    def __init__(self, app: Application, holder: str, faults: Faults, trouble: Trouble, *, on_time: timedelta) -> None:
        self._app: Final = app
        self._store: Final = app.driver.schedule
        self._holder: Final = holder
        self._faults: Final = faults
        self._trouble: Final = trouble
        self._on_time: Final = on_time
        self._code_version: Final = _settings.load().code_version
        self._threads: Final = Threads(THREADS)
        self._asking: Final[dict[str, asyncio.Task[list[Request[Any]]]]] = {}

    def hangs(self, task: str) -> bool:
        """True while a function that had its time still blocks a thread: it is not called beside itself."""
        asking = self._asking.get(task)
        return asking is not None and not asking.done()

    async def close(self) -> None:
        """Ends every function that is still called, or at least the wait for it."""
        self._threads.release()
        await end(set(self._asking.values()))

    async def fire(self, task: TaskHandle, calendar: Calendar, watermark: datetime, leader: Leader) -> None:
        """Dispatches what is due, slot by slot. A slot that fails ends it there; those before it stay dispatched."""
        due: list[Turn] = []
        try:
            due = await turns(
                calendar,
                watermark,
                leader.now,
                catch_up=task.catch_up,
                most=task.max_catch_up,
                on_time=self._on_time,
            )
            for turn in due:
                if not await self._dispatch(task, turn, calendar, leader):
                    return
        except DriverUnavailable as error:
            self._trouble.failed("jobs.scheduler.tick-failed", f"dispatching task {task.name}", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tasks go on
            await self._failed(task, due[-1].occurrence if due else leader.now, leader, error)
        else:
            self._faults.clear(task.name)

    async def _dispatch(self, task: TaskHandle, turn: Turn, calendar: Calendar, leader: Leader) -> bool:
        with producing("task.", task.name):
            return await self._dispatched(task, turn, calendar, leader)

    async def _dispatched(self, task: TaskHandle, turn: Turn, calendar: Calendar, leader: Leader) -> bool:
        occurrence = turn.occurrence.astimezone(calendar.zone)
        jobs = jobs_of(
            task,
            occurrence,
            await self._ask(task, occurrence),
            self._app.registry,
            limit=self._app.sizes.input,
            limits=self._app.limits,
            code_version=self._code_version,
        )
        done = await self._store.dispatch(
            self._holder,
            leader.term,
            Dispatch(task.name, turn.occurrence, turn.outcome, jobs, turn.watermark, turn.lapse),
        )
        if done is None:
            return False
        if done.fresh:
            self._app.metrics.add(series.TASK_SLOTS, task.name, turn.outcome.value)
            if turn.lapse is not None:
                self._app.metrics.add(series.TASK_SLOTS, task.name, turn.lapse.outcome.value, by=turn.lapse.slots)
                self._tell_lapse(task, turn.lapse)
            emit(
                logging.INFO,
                "jobs.scheduler.dispatched",
                f"{occurrence.isoformat()} {turn.outcome}; jobs: {len(done.jobs)}",
                name=task.name,
                worker_id=self._holder,
            )
        return True

    async def _ask(self, task: TaskHandle, occurrence: datetime) -> list[Request[Any]]:
        loop = asyncio.get_running_loop()
        with bound(self._app):
            asking = asyncio.create_task(entries(task, occurrence, lambda call: self._threads.run(call, loop)))
        self._asking[task.name] = asking
        try:
            await asyncio.wait({asking}, timeout=ANSWERS_WITHIN)
            if asking.done():
                return asking.result()
        finally:
            asking.cancel()
        raise TimedOut(
            f"task {task.name} did not answer within {ANSWERS_WITHIN:g} s for {occurrence.isoformat()}",
            fix="move the work into a job and let the task only ask for it",
        )

    async def _failed(self, task: TaskHandle, latest: datetime, leader: Leader, error: Exception) -> None:
        said = str(error) if isinstance(error, UltijobsError) else f"{type(error).__qualname__}: {error}"
        self._app.metrics.add(series.TASK_FAILURES, task.name)
        if self._faults.add(task.name, latest, leader.now):
            emit(
                logging.ERROR,
                "jobs.scheduler.tick-failed",
                f"task {task.name} was not dispatched for {latest.isoformat()}: {said}",
                exc_info=error,
                name=task.name,
                worker_id=self._holder,
                code=getattr(error, "code", None),
            )
        text = _text.clip(said, self._app.sizes.error)
        try:
            await self._store.fault(self._holder, leader.term, task.name, text)
        except Exception as away:  # noqa: BLE001 - the error itself is told already
            self._trouble.failed("jobs.scheduler.tick-failed", f"keeping the error of task {task.name}", away)

    def _tell_lapse(self, task: TaskHandle, lapse: Lapse) -> None:
        dropped = lapse.outcome is SlotOutcome.MISSED
        least = "at least " if lapse.slots >= COUNTED else ""
        emit(
            logging.WARNING if dropped else logging.INFO,
            "jobs.scheduler.missed" if dropped else "jobs.scheduler.skipped",
            f"{least}{lapse.slots} occurrences of task {task.name} "
            f"{'were dropped' if dropped else 'are skipped'}: {lapse.reason}",
            name=task.name,
            worker_id=self._holder,
            slots=lapse.slots,
        )
