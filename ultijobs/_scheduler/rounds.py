"""Rounds: renew the lead, see which tasks are due, dispatch each on its own, and say when to look again."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from ultijobs._definitions import cron
from ultijobs._definitions.calendar import Calendar
from ultijobs._definitions.task import TaskHandle
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._queue.schedule import Arming, Leader, ScheduleStore, SlotOutcome, TaskState
from ultijobs._scheduler.application import Application, holder
from ultijobs._scheduler.faults import Faults
from ultijobs._scheduler.firing import Firing
from ultijobs._service.condition import Pulse
from ultijobs._service.stop import Stop, StopRequest, end
from ultijobs._service.trouble import Trouble

__all__ = ["Rounds"]

INTERVAL: Final = timedelta(seconds=1)
LEAST_WAIT: Final = timedelta(milliseconds=10)
LEAVES_WITHIN: Final = 5.0
LEAST_ON_TIME: Final = timedelta(seconds=2)
GONE_AFTER: Final = timedelta(days=1)
"""How long a set of tasks may be without a leader until another's takes it for given up."""


class Rounds:
    """The scheduler without its process. Belongs to the loop that runs it; the application is open already."""

    def __init__(
        self,
        app: Application,
        *,
        lease: timedelta,
        interval: timedelta = INTERVAL,
        trouble: Trouble | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        """`trouble` is that of the process, when this is not all that it does."""
        self.holder: Final = holder()
        self.pulse: Final = Pulse() if pulse is None else pulse
        self.metrics: Final = app.metrics
        self._store: Final[ScheduleStore] = app.driver.schedule
        self._interval: Final = interval
        self._lease: Final = lease
        self._tasks: Final = dict(app.registry.tasks)
        self._scope: Final = _scope_of(self._tasks)
        self._calendars: Final = {
            name: Calendar(task.schedule, cron.zone(task.tz, f"task {name}: tz")) for name, task in self._tasks.items()
        }
        self._trouble: Final = Trouble(self.holder) if trouble is None else trouble
        self._faults: Final = Faults()
        self._firing: Final = Firing(
            app, self.holder, self._faults, self._trouble, on_time=max(2 * interval, LEAST_ON_TIME)
        )
        self._busy: Final[dict[str, asyncio.Task[None]]] = {}
        self._next: Final[dict[str, tuple[datetime, datetime | None]]] = {}
        self._term: int | None = None
        self.metrics.set(series.SCHEDULER_LEADER, 0)
        for name in self._tasks:
            self.metrics.add(series.TASK_FAILURES, name, by=0)
            self.metrics.add(series.TASK_SLOTS, name, SlotOutcome.FIRED.value, by=0)

    @property
    def leads(self) -> bool:
        return self._term is not None

    async def run(self, stop: StopRequest) -> None:
        """Rounds until the stop is asked for; then what is being dispatched may end, and the lead is given up."""
        emit(
            logging.INFO, "jobs.scheduler.started", f"tasks: {', '.join(self._tasks) or 'none'}", worker_id=self.holder
        )
        asked = asyncio.create_task(stop.at_least(Stop.DRAIN))
        try:
            while stop.stage is Stop.NO:
                try:
                    wait = await self.round()
                    self.pulse.beat()
                    self._trouble.answered()
                    self._trouble.worked("a round of the scheduler")
                except Exception as error:  # noqa: BLE001 - the next round tries again
                    self._trouble.failed("jobs.scheduler.tick-failed", "a round of the scheduler", error)
                    wait = self._interval
                await asyncio.wait({asked}, timeout=wait.total_seconds())
            emit(logging.INFO, "jobs.scheduler.draining", "no further task is dispatched", worker_id=self.holder)
        finally:
            await end({asked})
            await self.leave()

    async def round(self) -> timedelta:
        """Starts what is due, if this scheduler leads; answers how long until there is something to do."""
        if not self._tasks:
            return self._interval
        leader = await self._store.lead(self.holder, lease=self._lease, scope=self._scope)
        if not self._leads(leader):
            return self._interval
        # Looked at before the states: what ends meanwhile is judged by the state that it left, in the next round.
        free = [task for name, task in self._tasks.items() if name not in self._busy]
        states = {state.task: state for state in await self._store.states()}
        free = [task for task in free if not self._led_elsewhere(states.get(task.name))]
        unarmed = [task for task in free if _changed(task, states.get(task.name), self._scope)]
        gone = self._gone(states, unarmed, leader.now)
        # First, as it is told by whom the tasks that are armed belonged to.
        if gone:
            await self._store.retire(self.holder, leader.term, gone)
        if unarmed:
            await self._store.arm(self.holder, leader.term, [Arming(t.name, t.cron, t.tz) for t in unarmed])
        armed = [task for task in free if task not in unarmed]
        coming = [self._start(task, states[task.name], leader) for task in armed]
        soonest = min((each.astimezone(UTC) for each in coming if each is not None), default=None)
        return self._interval if soonest is None else max(LEAST_WAIT, min(self._interval, soonest - leader.now))

    async def settled(self) -> None:
        """Returns when nothing that was started is still being dispatched."""
        while self._busy:
            await asyncio.wait(self._busy.values())

    async def leave(self) -> None:
        """Lets what is being dispatched end, for some seconds, and gives the lead up."""
        if self._busy:
            await asyncio.wait(self._busy.values(), timeout=LEAVES_WITHIN)
        await end(set(self._busy.values()))
        await self._firing.close()
        if self._term is not None:
            self._term = None
            self.metrics.set(series.SCHEDULER_LEADER, 0)
            try:
                async with asyncio.timeout(LEAVES_WITHIN):
                    await self._store.resign(self.holder)
            except Exception as error:  # noqa: BLE001 - the lease ends by itself
                self._trouble.failed("jobs.scheduler.tick-failed", "giving the lead up", error)

    def _led_elsewhere(self, state: TaskState | None) -> bool:
        return state is not None and state.owned_by_another(self._scope)

    def _gone(self, states: Mapping[str, TaskState], unarmed: Sequence[TaskHandle], now: datetime) -> list[str]:
        """What is declared no more: by the set that ours follows on, or by any that nobody has led for a day."""
        before = {self._scope, *(states[task.name].owner for task in unarmed if task.name in states)}
        found: list[str] = []
        for name, state in states.items():
            if name in self._tasks or state.retired or self._led_elsewhere(state):
                continue
            led_until = None if state.leader is None else state.leader.lease_until
            if state.owner in before or led_until is None or led_until < now - GONE_AFTER:
                found.append(name)
        return found

    def _leads(self, leader: Leader) -> bool:
        mine = leader.held_by(self.holder)
        if mine and self._term != leader.term:
            emit(logging.INFO, "jobs.scheduler.leading", f"term {leader.term}", worker_id=self.holder)
        elif not mine and self._term is not None:
            emit(
                logging.WARNING,
                "jobs.scheduler.leadership-lost",
                f"term {self._term} is over; {leader.holder} leads",
                worker_id=self.holder,
            )
        self._term = leader.term if mine else None
        self.metrics.set(series.SCHEDULER_LEADER, 1 if mine else 0)
        return mine

    def _start(self, task: TaskHandle, state: TaskState, leader: Leader) -> datetime | None:
        """Starts the dispatch of a task that is due; answers when it is due next."""
        calendar = self._calendars[task.name]
        watermark, due = self._next.get(task.name, (None, None))
        if watermark != state.watermark:
            due = calendar.after(state.watermark)
            self._next[task.name] = (state.watermark, due)
        if due is None or due.astimezone(UTC) > leader.now:
            return due
        if not (
            self._firing.hangs(task.name) or self._faults.holds_back(task.name, calendar.latest(leader.now), leader.now)
        ):
            started = asyncio.create_task(self._firing.fire(task, calendar, state.watermark, leader))
            self._busy[task.name] = started
            started.add_done_callback(lambda _: self._busy.pop(task.name, None))
        return calendar.after(leader.now)


def _changed(task: TaskHandle, state: TaskState | None, scope: str) -> bool:
    return state is None or state.retired or (state.cron, state.tz, state.owner) != (task.cron, task.tz, scope)


def _scope_of(names: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
