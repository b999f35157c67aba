"""`JobsTestApp`: an application on a queue in memory, driven step by step by its test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from typing_extensions import TypeVar as DefaultedTypeVar

from ultijobs._definitions import checks
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.calendar import Calendar
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.registry import Declared
from ultijobs._durations import Duration, parse
from ultijobs._enqueue.opening import refuse_a_running_loop
from ultijobs._queue.records import JobState, Outcome
from ultijobs._scheduler.rounds import Rounds
from ultijobs._scheduler.scheduler import Scheduler
from ultijobs._tx.connections import at_once
from ultijobs._worker.limiter import Limiter
from ultijobs._worker.observing import Ended
from ultijobs._worker.worker import Worker
from ultijobs.app import App
from ultijobs.errors import Invariant
from ultijobs.testing._clock import FrozenClock
from ultijobs.testing._place import Place, Stage
from ultijobs.testing._records import EnqueuedJob, Execution, execution

__all__ = ["JobsTestApp"]

S = DefaultedTypeVar("S", default=Any)
In = TypeVar("In")
T = TypeVar("T")

_FAILED: Final = frozenset({Outcome.RETRIED, Outcome.DEAD, Outcome.FAILED})


class JobsTestApp(Generic[S]):
    """Puts an application on a queue in memory for a block: `with JobsTestApp(app) as jobs:` (or `async with`).

    In the block everything that the application enqueues and publishes, from any thread and loop, goes there, and no
    database is touched. Nothing runs by itself: `run_until_idle` runs what is due, by the worker of production, and
    time stands still until `clock` is moved. What is given `tx=` of the application's own database is stored at once,
    since memory cannot follow that transaction. Each run is the life of one worker process: it enters and leaves the
    application's lifespan, unless the test gives the `services` itself. Rates of tenants go on by the clock.

    Args:
        app: The application; None makes one of `jobs` and `tasks`.
        jobs: Modules or handles, for a test without an application.
        tasks: Likewise.
        services: What handlers get as `ctx.services`, in place of what the lifespan yields.
        clock: The time of the queue, else one of its own.
        concurrency: How many handlers run at once; 1 runs them one after the other, in the order of claims.

    """

    def __init__(
        self,
        app: App[S] | None = None,
        *,
        jobs: Iterable[Declared] = (),
        tasks: Iterable[Declared] = (),
        services: S | None = None,
        clock: FrozenClock | None = None,
        concurrency: int = 20,
    ) -> None:
        jobs, tasks = list(jobs), list(tasks)
        if app is not None and (jobs or tasks):
            raise Invariant("JobsTestApp is given an app, and jobs or tasks besides", fix="declare them in App(…)")
        self.app: Final = (
            cast("App[S]", App(jobs=jobs, tasks=tasks)) if app is None else checks.application(app, "JobsTestApp")
        )
        self.clock: Final = FrozenClock() if clock is None else clock
        self.driver: Final = Stage(self.clock)
        self.executions: Final[list[Execution]] = []
        """All attempts that have ended so far, in the order of their end."""
        self._services = services
        self._concurrency = concurrency
        self._limiter = Limiter(self.app.limits, concurrency=concurrency, clock=self.clock.monotonic)
        self._stack: ExitStack | None = None

    # -- the block -------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        if self._stack is not None:
            raise Invariant("this JobsTestApp is entered already", fix="make one for each block")
        with ExitStack() as stack:
            stack.enter_context(self.app.staged(Place(self.driver)))
            stack.enter_context(self.app.ambient())
            stack.enter_context(self._provided())
            self._arm()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # -- running ---------------------------------------------------------------------------------------
    async def run_until_idle(self, *, raise_failures: bool = False) -> list[Execution]:
        """Runs what is due, and what becomes due by that; answers the attempts that ended, in the order of their end.

        What is delayed, suspended, paused or waits for its backoff stays: move the clock and run again. With
        `raise_failures` the error of the first attempt that failed is raised, once all has run.
        """
        self._refuse_outside("run_until_idle")
        since = len(self.executions)
        await Worker(
            self.app, concurrency=self._concurrency, observer=self._note, limiter=self._limiter
        ).run_until_idle()
        ran = self.executions[since:]
        if raise_failures:
            _raise_first(ran)
        return ran

    async def run_tasks(
        self, *, until: datetime | Duration | None = None, raise_failures: bool = False
    ) -> list[Execution]:
        """Lets time pass until `until`: tasks fire at their slots, and jobs run when they are due.

        `until` is an aware time, or how long from now; None fires what is due now. Time that was moved by the clock
        alone is an outage, which each task makes up for by its catch-up mode. A task that raises is `Invariant`, with
        what it raised in the log.
        """
        self._refuse_outside("run_tasks")
        end = self._end(until)
        since = len(self.executions)
        while True:
            await self._dispatch()
            if any(at <= self.clock.now() for at in self._due_times()):
                await self.run_until_idle()
            now = self.clock.now()
            if now >= end:
                break
            self.clock.move_to(min(end, self._next_stop(now) or end))
        ran = self.executions[since:]
        if raise_failures:
            _raise_first(ran)
        return ran

    async def publish(
        self, event: str, payload: object = None, *, key: str | None = None, ttl: Duration = "7d"
    ) -> None:
        """Publishes an event, as `App.publish` does: the runs that wait for it are due then."""
        self._refuse_outside("publish")
        await self.app.publish(event, payload, key=key, ttl=ttl, tx=False)

    # -- for sync tests --------------------------------------------------------------------------------
    def run_until_idle_sync(self, *, raise_failures: bool = False) -> list[Execution]:
        """`run_until_idle` for sync tests."""
        return _blocking(self.run_until_idle(raise_failures=raise_failures), "run_until_idle_sync")

    def run_tasks_sync(
        self, *, until: datetime | Duration | None = None, raise_failures: bool = False
    ) -> list[Execution]:
        """`run_tasks` for sync tests."""
        return _blocking(self.run_tasks(until=until, raise_failures=raise_failures), "run_tasks_sync")

    def publish_sync(self, event: str, payload: object = None, *, key: str | None = None, ttl: Duration = "7d") -> None:
        """`publish` for sync tests."""
        _blocking(self.publish(event, payload, key=key, ttl=ttl), "publish_sync")

    # -- looking ---------------------------------------------------------------------------------------
    def enqueued(self, handle: JobHandle[In]) -> list[EnqueuedJob[In]]:
        """All jobs of `handle` that are stored, done ones too, in the order in which they were enqueued."""
        if not self.app.registered(handle):
            raise Invariant(f"enqueued: {handle!r:.100} is not registered here", fix="list it in App(jobs=[…])")
        now = self.clock.now()
        return [
            EnqueuedJob(
                id=row.id,
                run_id=row.run_id,
                name=row.name,
                input=handle.validate(row.input),
                tenant=row.tenant_id,
                idempotency_key=row.idempotency_key,
                queue=row.queue,
                priority=row.priority,
                state=JobState(row.shown_state(now)),
                attempt=row.attempt,
                max_attempts=row.max_attempts,
                run_at=row.run_at,
                created_at=row.created_at,
                enqueued_by=row.enqueued_by,
                last_error=row.last_error,
            )
            for row in self.driver.rows(handle.name)
        ]

    def executions_of(self, job: UUID) -> list[Execution]:
        """The attempts of one job that have ended so far."""
        return [each for each in self.executions if each.job_id == job]

    # -- inside ----------------------------------------------------------------------------------------
    def _refuse_outside(self, call: str) -> None:
        if self._stack is None:
            raise Invariant(f"{call} outside of the block", fix="use it in `with JobsTestApp(app) as jobs:`")

    @contextmanager
    def _provided(self) -> Generator[None]:
        services, lifespan = self._services, self.app.lifespan
        if services is not None:
            self.app.lifespan = lambda: nullcontext(services)
        try:
            yield
        finally:
            self.app.lifespan = lifespan

    def _arm(self) -> None:
        """Counts the slots of every task from now on, by a first round of the scheduler."""
        if self.app.registry.tasks:
            first = Rounds(self.app, lease=timedelta(seconds=1))
            at_once(first.round())
            at_once(self.driver.schedule.resign(first.holder))

    async def _dispatch(self) -> None:
        if not self.app.registry.tasks:
            return
        await Scheduler(self.app).run_once()
        for state in await self.driver.schedule.states():
            if state.last_error is not None:
                raise Invariant(f"task {state.task} was not dispatched: {state.last_error}", fix="fix its function")

    def _end(self, until: datetime | Duration | None) -> datetime:
        now = self.clock.now()
        if until is None:
            return now
        if not isinstance(until, datetime):
            return now + parse(until, what="run_tasks: until")
        if until.utcoffset() is None or until < now:
            raise Invariant(
                f"run_tasks: until is {until.isoformat()}, and it is {now.isoformat()}",
                fix="pass an aware time that is still to come",
            )
        return until

    def _due_times(self) -> list[datetime]:
        registry = self.app.registry
        handles: list[JobHandle[Any] | BackfillHandle[Any]] = [*registry.jobs.values(), *registry.backfills.values()]
        return self.driver.due_times({handle.queue for handle in handles}, {handle.name for handle in handles})

    def _next_stop(self, now: datetime) -> datetime | None:
        """When a task fires, a job is due or a rate lets one start; what else did not run is passed over."""
        stops = [Calendar(task.schedule, ZoneInfo(task.tz)).after(now) for task in self.app.registry.tasks.values()]
        stops += [at for at in self._due_times() if at > now]
        opens = self._limiter.opens_at()
        if opens is not None and opens > self.clock.monotonic():
            stops.append(now + timedelta(seconds=opens - self.clock.monotonic(), microseconds=1))
        return min((stop for stop in stops if stop is not None), default=None)

    def _note(self, ended: Ended) -> None:
        self.executions.append(execution(ended, self.clock.now()))


def _blocking(work: Coroutine[Any, Any, T], call: str) -> T:
    try:
        refuse_a_running_loop(call)
    except Invariant:
        work.close()
        raise
    return asyncio.run(work)


def _raise_first(ran: list[Execution]) -> None:
    for each in ran:
        if each.outcome in _FAILED and each.error is not None:
            raise each.error
