"""`Worker`: claims an application's jobs, runs them and settles them, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from ultijobs._definitions import checks
from ultijobs._definitions.ambient import bound
from ultijobs._durations import Duration
from ultijobs._execution.children import tracked
from ultijobs._log import emit
from ultijobs._metrics.health import Health
from ultijobs._metrics.server import ANYWHERE, serving
from ultijobs._outbox.relay import Relay
from ultijobs._queue.telling import WorkerOrder
from ultijobs._scheduler.rounds import Rounds
from ultijobs._service.gauges import queue_gauges
from ultijobs._service.patience import Patience
from ultijobs._service.stop import PARENT_FD, Stop, StopRequest, end, on_parent_death
from ultijobs._service.trouble import Trouble
from ultijobs._steps.threads import Threads
from ultijobs._worker.application import (
    Application,
    catalogue_of,
    handlers_of,
    host_of,
    identity_of,
    refuse_unkept_caps,
)
from ultijobs._worker.caps import Caps, declared_caps
from ultijobs._worker.crew import Crew
from ultijobs._worker.drain import break_off, drain, hand_back_rest, leave_behind
from ultijobs._worker.limiter import Limiter
from ultijobs._worker.observing import Observer
from ultijobs._worker.services import Services
from ultijobs._worker.settings import settings
from ultijobs._worker.upkeep import Upkeep
from ultijobs._worker.vitals import vitals

__all__ = ["Worker"]

LAST_WORD_WITHIN: Final = 2.0


class Worker:
    """Runs the jobs that `app` registers, at most `concurrency` at a time over all its queues.

    A claimed job is held by a lease that is renewed at a third of `lease`, from a thread of its own: it survives a
    handler that blocks the event loop. When the process dies the lease lapses and another worker delivers the job
    again, as the next attempt. `queues` None serves every queue that the jobs declare. `name` is shown as `worker_id`
    and decides nothing. With `scheduler` it also takes its turn at dispatching the application's tasks, with `relay` at
    publishing what the application staged in its outbox. `observer` is told of each attempt that has ended; what a
    `limiter` counts outlives the worker. With `metrics_port` `run` answers `GET /metrics` and `GET /health` there.
    Raises `Invariant` or `DurationInvalid` for options that make no sense.
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
        scheduler: bool = True,
        relay: bool = True,
        observer: Observer | None = None,
        metrics_port: int | None = None,
        limiter: Limiter | None = None,
        metrics_host: str = ANYWHERE,
    ) -> None:
        self._app = checks.application(app, "Worker")
        self._settings = settings(
            queues=queues, concurrency=concurrency, lease=lease, grace=grace, poll=poll, name=name
        )
        self._schedules = scheduler and bool(app.registry.tasks)
        self._observer = observer
        self._limiter = Limiter(app.limits, concurrency=concurrency) if limiter is None else limiter
        self._relays = relay and app.outbox is not None
        self._port = metrics_port
        self._host = metrics_host
        self._trouble = Trouble(self._settings.worker_id)
        self._stop = StopRequest()
        self._patience = Patience(self._stop, self._trouble)
        self._ordered = WorkerOrder.NONE
        self._crew: Crew | None = None
        self._handing_back: set[asyncio.Task[None]] = set()

    @property
    def worker_id(self) -> str:
        return self._settings.worker_id

    def health(self) -> Health:
        """Whether it makes progress, and why not; what `GET /health` answers. Safe from any thread."""
        return vitals(self._crew, self._settings, self._trouble, self._stop)

    def stop(self, *, now: bool = False) -> None:
        """Drains: what runs has the grace to end, the rest is handed back; with `now` all is handed back at once.

        Safe from any thread and signal handler, also before `run`: then it ends as soon as it has begun.
        """
        self._stop.ask(Stop.NOW if now else Stop.DRAIN)

    async def run(self, *, alone: bool = False) -> None:
        """Works until `stop`, SIGTERM or ctrl-c; a second signal hands back at once and raises `KeyboardInterrupt`.

        Cancelled, it hands back at once too; unless it is `alone` in its process, where only a job can have cancelled
        it, with all other tasks: then no attempt is handed back at no cost. Waits for a database that is away. Raises
        `SchemaOutdated` for tables that do not fit this release, `JobConcurrencyUnenforceable` for caps that the driver
        cannot keep, `LifespanFailed`; then nothing was claimed.
        """
        parent = os.environ.get(PARENT_FD)
        with self._stop.on_signals(), on_parent_death(self._stop, None if parent is None else int(parent)):
            async with contextlib.AsyncExitStack() as stack:
                stack.enter_context(
                    serving(self._port, self._host, self._app.metrics, self.health, worker_id=self.worker_id)
                )
                crew = await self._start(stack)
                if crew is not None:
                    await self._work(crew, stack, alone=alone)
        if self._stop.interrupted:
            raise KeyboardInterrupt

    async def run_until_idle(self) -> None:
        """Runs what is due, and what becomes due by that, until nothing of its names runs or can be claimed.

        What is delayed, suspended, paused or at its cap stays. It waits for jobs that run, never for a time to come.
        """
        async with contextlib.AsyncExitStack() as stack:
            crew = await self._start(stack)
            if crew is None:
                return
            try:
                await self._until_idle(crew)
            finally:
                await hand_back_rest(crew)
                await crew.settler.drained()

    async def _until_idle(self, crew: Crew) -> None:
        await crew.caps.keep(await self._app.driver.inspect.catalog("job"))
        while self._stop.stage is Stop.NO:
            await crew.reaper.once()
            await crew.deliverer.once()
            await crew.claimer.run_until_idle()
            if await crew.deliverer.once():
                continue
            if not await crew.others_running():
                break
            await asyncio.sleep(self._settings.poll.total_seconds())

    async def _start(self, stack: contextlib.AsyncExitStack) -> Crew | None:
        """Opens everything in the order in which the stack closes it; None when the stop came first."""
        refuse_unkept_caps(self._app)
        if not await self._opened(stack):
            return None
        app, driver = self._app, self._app.driver
        identity = identity_of(app, self._settings)
        if not await self._patience.answered(
            "publishing the catalogue", lambda: driver.publish_catalog(catalogue_of(app))
        ):
            return None
        services = await stack.enter_async_context(Services(app.lifespan, identity.worker_id))
        stack.enter_context(bound(app))
        loop = asyncio.get_running_loop()
        stack.enter_context(tracked(loop))
        threads = Threads(self._settings.concurrency * 2)
        # A function that never returns keeps its thread, but not the loop that waits for it.
        stack.callback(threads.release)
        crew = Crew(
            driver,
            handlers_of(app),
            identity,
            self._settings,
            self._limiter,
            Caps(
                driver,
                queues=identity.queues,
                names=identity.names,
                declared=declared_caps(app.registry.jobs.values(), identity.names),
                apart=[queue for queue in identity.queues if app.limits.tells_tenants_apart(queue)],
            ),
            self._trouble,
            app.metrics,
            lambda steps: host_of(app, self._settings, loop, threads, services, steps),
            self._take_order,
            self._observer,
        )
        self._crew = crew
        crew.keeper.start()
        stack.push_async_callback(crew.keeper.stop)
        stack.push_async_callback(crew.close)
        if not await self._patience.unless_stopped(crew.keeper.ready()):
            return None
        return crew

    async def _work(self, crew: Crew, stack: contextlib.AsyncExitStack, *, alone: bool) -> None:
        await stack.enter_async_context(self._app.driver.subscribe(crew.signals.take))
        me = crew.identity
        emit(
            logging.INFO,
            "jobs.worker.started",
            f"serving {', '.join(me.queues)} (slots: {me.concurrency}, kinds of job: {len(me.names)})",
            worker_id=me.worker_id,
        )
        background = {
            asyncio.create_task(crew.heartbeat.run()),
            asyncio.create_task(crew.rounds.run()),
            asyncio.create_task(crew.chores.run()),
            asyncio.create_task(self._upkeep(crew).run()),
            asyncio.create_task(crew.keeper.broken()),
        }
        if self._port is not None:
            app = self._app
            gauges = queue_gauges(app.driver, app.metrics, holder=me.worker_id, trouble=self._trouble)
            background.add(asyncio.create_task(gauges.run()))
        parts = {asyncio.create_task(part) for part in self._parts()}
        background |= parts
        claiming = asyncio.create_task(crew.claimer.run())
        asked = asyncio.create_task(self._stop.at_least(Stop.DRAIN))
        try:
            ended, _ = await asyncio.wait({asked, claiming, *background}, return_when=asyncio.FIRST_COMPLETED)
            deadline = time.monotonic() + self._settings.grace.total_seconds()
            await drain(crew, claiming, self._settings, self._stop)
            if parts and self._stop.stage is not Stop.NO:
                await asyncio.wait(parts, timeout=max(LAST_WORD_WITHIN, deadline - time.monotonic()))
            for task in ended:
                # None of these ends by itself: one that did has a fault, and this process must not go on without it.
                task.result()
        except asyncio.CancelledError:
            if alone and self._stop.stage is Stop.NO:
                await break_off(crew)
                raise
            # Whoever cancels does not wait for a grace.
            self.stop(now=True)
            await drain(crew, claiming, self._settings, self._stop)
            raise
        finally:
            await end({asked, claiming, *background, *self._handing_back})
        leave_behind(crew)
        crew.heartbeat.state = "stopped"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORD_WITHIN):
                await crew.heartbeat.once()

    def _upkeep(self, crew: Crew) -> Upkeep:
        return Upkeep(
            self._app.driver,
            declared=catalogue_of(self._app),
            retention=self._app.retention,
            instance=crew.heartbeat.instance,
            worker_id=self.worker_id,
            trouble=self._trouble,
        )

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        """What this process does besides its jobs. Each runs in many processes, and a lease decides who works."""
        parts: list[Coroutine[Any, Any, None]] = []
        if self._schedules:
            parts.append(Rounds(self._app, lease=self._settings.lease, trouble=self._trouble).run(self._stop))
        if self._relays:
            relay = Relay(self._app, relay_id=self._settings.worker_id)
            parts.append(relay.work(self._stop, gauges=self._port is not None, trouble=self._trouble))
        return parts

    def _take_order(self, order: WorkerOrder) -> None:
        """Obeys what an operator asked of this worker; told with every heartbeat, `NONE` included."""
        if order is WorkerOrder.EXIT:
            self.stop()
        elif order is not self._ordered and self._crew is not None and self._stop.stage is Stop.NO:
            self._ordered = order
            self._crew.pause(paused=order is WorkerOrder.DRAIN)
            for task in self._handing_back:
                task.cancel()
            if order is WorkerOrder.DRAIN:
                task = asyncio.create_task(self._hand_back_later(self._crew))
                self._handing_back.add(task)
                task.add_done_callback(self._handing_back.discard)

    async def _hand_back_later(self, crew: Crew) -> None:
        await asyncio.sleep(self._settings.grace.total_seconds())
        await hand_back_rest(crew)

    async def _opened(self, stack: contextlib.AsyncExitStack) -> bool:
        """Opens the application, waiting for a database that is away; False when the stop came first."""
        if not await self._patience.answered("connecting", lambda: self._app.open(role="worker")):
            return False
        stack.push_async_callback(self._app.close)
        return True
