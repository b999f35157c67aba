"""`Relay`: publishes what an application staged in its own database into the queue, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from typing import Final, Protocol

from ultijobs._coalesce import Backoff
from ultijobs._connect import driver_for
from ultijobs._definitions import checks
from ultijobs._definitions.bounds import Retention
from ultijobs._durations import Duration, parse
from ultijobs._log import emit
from ultijobs._metrics.health import Health
from ultijobs._metrics.metrics import Metrics
from ultijobs._metrics.server import ANYWHERE, serving
from ultijobs._outbox.passing import Passing, QueueAway
from ultijobs._queue.driver import Driver
from ultijobs._service.condition import PATIENCE, Pulse, condition
from ultijobs._service.gauges import Gauges, outbox_gauges, queue_gauges
from ultijobs._service.patience import Patience
from ultijobs._service.stop import Stop, StopRequest, end
from ultijobs._service.trouble import Trouble
from ultijobs.errors import Invariant

__all__ = ["Relay"]

_AFTER_FAILURE: Final = Backoff(first=0.2, most=5.0)
_FORGET_EVERY: Final = 60.0


class Application(Protocol):
    """The part of `App` that a relay uses."""

    @property
    def driver(self) -> Driver: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def outbox(self) -> str | None: ...
    @property
    def schema(self) -> str: ...
    @property
    def retention(self) -> Retention: ...
    async def open(self, role: str = "app") -> None: ...
    async def close(self) -> None: ...


class Relay:
    """Publishes staged rows, `batch` at a time, looking every `interval`; any number of relays may run.

    A claimed row is another relay's after `claim_lease`, so a relay that dies holds nothing up for longer. A row that
    the queue refuses is tried 8 times, 1 s apart and doubling to 30 s, then set aside with the later rows of its own
    transaction; all others go on. Published rows are deleted after the application's `Retention.outbox`. `relay_id` is
    shown as `claimed_by` and decides nothing. With `metrics_port` `run` answers `GET /metrics` and `GET /health` there.
    """

    def __init__(
        self,
        app: Application,
        *,
        batch: int = 100,
        interval: Duration = "200ms",
        claim_lease: Duration = "30s",
        relay_id: str | None = None,
        metrics_port: int | None = None,
        metrics_host: str = ANYWHERE,
    ) -> None:
        self._app = checks.application(app, "Relay")
        self._port = metrics_port
        self._host = metrics_host
        self._pulse = Pulse()
        self._batch = checks.whole(batch, "Relay: batch", least=1, most=10_000)
        self._interval = parse(interval, what="Relay: interval", positive=True)
        self._claim_lease = parse(claim_lease, what="Relay: claim_lease", positive=True)
        self._relay_id = _own_name() if relay_id is None else checks.name(relay_id, "Relay: relay_id")
        self._trouble = Trouble(self._relay_id)
        self._queue_trouble = Trouble(self._relay_id)
        self._stop = StopRequest()

    @property
    def relay_id(self) -> str:
        return self._relay_id

    def health(self) -> Health:
        """Whether it gets through its passes, and why not; what `GET /health` answers. Safe from any thread."""
        return condition(
            "relay",
            self._relay_id,
            [self._trouble, self._queue_trouble],
            self._stop,
            patience=min(PATIENCE, self._claim_lease.total_seconds()),
            pulse=self._pulse,
            interval=self._interval.total_seconds(),
        )

    def stop(self, *, now: bool = False) -> None:
        """Ends after the pass under way; with `now` the pass is broken off and its claims are given back.

        Safe from any thread and signal handler, also before `run`.
        """
        self._stop.ask(Stop.NOW if now else Stop.DRAIN)

    async def run(self) -> None:
        """Relays until `stop`, SIGTERM or ctrl-c; a second signal breaks off and raises `KeyboardInterrupt`.

        Waits for databases that are away. Raises `Invariant` for an application without outbox, and `SchemaOutdated`.
        """
        serves = serving(self._port, self._host, self._app.metrics, self.health, worker_id=self._relay_id)
        with self._stop.on_signals(), serves:
            await self.work(self._stop, gauges=self._port is not None)
        if self._stop.interrupted:
            raise KeyboardInterrupt

    async def work(self, stop: StopRequest, *, gauges: bool = False, trouble: Trouble | None = None) -> None:
        """`run` inside of another role, which minds the signals: until `stop` is asked for.

        `trouble` is what that role tells of the queue. With `gauges` it stands for the seats whose gauges are exported.
        """
        self._queue_trouble = self._queue_trouble if trouble is None else trouble
        if self._app.outbox is None:
            raise Invariant(
                "the application has no outbox to relay from",
                fix='set App(outbox="postgresql://…"), or run no relay: without an outbox enqueue joins tx itself',
            )
        outbox = driver_for(self._app.outbox, self._app.schema)
        patience, queue_patience = Patience(stop, self._trouble), Patience(stop, self._queue_trouble)
        async with contextlib.AsyncExitStack() as stack:
            if not await patience.answered("connecting to the outbox", lambda: outbox.open("relay")):
                return
            stack.push_async_callback(outbox.close)
            if not await queue_patience.answered("connecting to the queue", lambda: self._app.open("relay")):
                return
            stack.push_async_callback(self._app.close)
            emit(
                logging.INFO,
                "jobs.outbox.started",
                f"relaying from {outbox.url} to {self._app.driver.url}",
                worker_id=self._relay_id,
            )
            passing = Passing(
                outbox.outbox,
                self._app.driver,
                relay_id=self._relay_id,
                batch=self._batch,
                lease=self._claim_lease,
                trouble=self._queue_trouble,
                metrics=self._app.metrics,
            )
            beside = {asyncio.create_task(each.run()) for each in (self._gauges(outbox, trouble) if gauges else ())}
            try:
                await self._pass_after_pass(passing, outbox, stop)
            finally:
                await end(beside)

    def _gauges(self, outbox: Driver, trouble: Trouble | None) -> list[Gauges]:
        app, me = self._app, self._relay_id
        own = [outbox_gauges(outbox, app.metrics, holder=me, trouble=self._trouble)]
        if trouble is None:
            own.append(queue_gauges(app.driver, app.metrics, holder=me, trouble=self._queue_trouble))
        return own

    async def _pass_after_pass(self, passing: Passing, outbox: Driver, stop: StopRequest) -> None:
        asked = asyncio.create_task(stop.at_least(Stop.DRAIN))
        broken_off = asyncio.create_task(stop.at_least(Stop.NOW))
        forgetting = asyncio.create_task(self._forget(outbox))
        failures = 0
        try:
            while stop.stage is Stop.NO:
                pause = self._interval.total_seconds()
                under_way = asyncio.create_task(passing.once())
                try:
                    await asyncio.wait({under_way, broken_off}, return_when=asyncio.FIRST_COMPLETED)
                    if not under_way.done():
                        return
                    pause = 0.0 if under_way.result() else pause
                except QueueAway:
                    failures += 1
                    pause = _AFTER_FAILURE.after(failures)
                    self._trouble.answered()
                except Exception as error:  # noqa: BLE001 - the next pass tries again
                    failures += 1
                    pause = _AFTER_FAILURE.after(failures)
                    self._trouble.failed("jobs.outbox.tick-failed", "relaying", error)
                else:
                    failures = 0
                    self._pulse.beat()
                    self._trouble.answered()
                    self._trouble.worked("relaying")
                finally:
                    await end({under_way})
                await asyncio.wait({asked}, timeout=pause)
        finally:
            await end({asked, broken_off, forgetting})

    async def _forget(self, outbox: Driver) -> None:
        while True:
            try:
                while await outbox.outbox.forget(self._app.retention.outbox):
                    pass
            except Exception as error:  # noqa: BLE001 - the next round tries again
                self._trouble.failed("jobs.outbox.forget-failed", "deleting published rows", error)
            else:
                self._trouble.worked("deleting published rows")
            await asyncio.sleep(_FORGET_EVERY)


def _own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
