"""The scheduler's life: opening, rounds until it is told to stop, giving the lead up."""

from __future__ import annotations

import asyncio
from typing import Final

from ultijobs._definitions import checks
from ultijobs._durations import Duration, parse
from ultijobs._metrics.health import Health
from ultijobs._metrics.server import ANYWHERE, serving
from ultijobs._scheduler.application import Application, catalogue_of
from ultijobs._scheduler.rounds import Rounds
from ultijobs._service.condition import PATIENCE, Pulse, condition
from ultijobs._service.gauges import queue_gauges
from ultijobs._service.patience import Patience
from ultijobs._service.stop import Stop, StopRequest, end
from ultijobs._service.trouble import Trouble

__all__ = ["Scheduler"]

_ROLE: Final = "scheduler"


class Scheduler:
    """Asks for the jobs of the tasks that are due, every `interval`; one process leads for `lease` at a time.

    Any number may run, alone or inside of workers: leadership saves work, and what makes a slot fire once is its row
    in the ledger, written in one transaction with its jobs. When the leader dies another leads within `lease` and makes
    up for what was missed, by the catch-up mode of each task. With `metrics_port` `run` answers `GET /metrics` and
    `GET /health` there.
    """

    def __init__(
        self,
        app: Application,
        *,
        interval: Duration = "1s",
        lease: Duration = "30s",
        metrics_port: int | None = None,
        metrics_host: str = ANYWHERE,
    ) -> None:
        self._app = checks.application(app, "Scheduler")
        self._port = metrics_port
        self._host = metrics_host
        self._pulse = Pulse()
        self._running: Rounds | None = None
        self._interval = parse(interval, what="Scheduler: interval", positive=True)
        self._lease = parse(lease, what="Scheduler: lease", positive=True)
        self._stop = StopRequest()
        self._trouble = Trouble(_ROLE)

    def health(self) -> Health:
        """Whether it gets through its rounds, and why not; what `GET /health` answers. Safe from any thread."""
        known = condition(
            _ROLE,
            _ROLE if self._running is None else self._running.holder,
            [self._trouble],
            self._stop,
            patience=min(PATIENCE, self._lease.total_seconds()),
            pulse=self._pulse,
            interval=self._interval.total_seconds(),
        )
        return Health(known.reasons, {**known.facts, "leads": self._running is not None and self._running.leads})

    def stop(self) -> None:
        """Ends `run` after what is being dispatched. Safe from any thread and signal handler, also before `run`."""
        self._stop.ask(Stop.DRAIN)

    async def run(self) -> None:
        """Works until `stop`, SIGTERM or ctrl-c; a second signal raises `KeyboardInterrupt` at the end.

        Waits for a database that is away. Raises `SchemaOutdated` for tables that do not fit this release.
        """
        patience = Patience(self._stop, self._trouble)
        serves = serving(self._port, self._host, self._app.metrics, self.health, worker_id=_ROLE)
        with self._stop.on_signals(), serves:
            if await patience.answered("connecting", lambda: self._app.open(role="scheduler")):
                try:
                    if await patience.answered("publishing the catalogue", self._publish):
                        await self._work()
                finally:
                    await self._app.close()
        if self._stop.interrupted:
            raise KeyboardInterrupt

    async def run_once(self) -> None:
        """One round, for tests and scripts: arms new tasks, dispatches what is due now and gives the lead up."""
        await self._app.open(role="scheduler")
        try:
            rounds = self._rounds()
            await rounds.round()
            await rounds.settled()
            await rounds.leave()
        finally:
            await self._app.close()

    async def _work(self) -> None:
        rounds = self._running = self._rounds()
        gauges = queue_gauges(self._app.driver, self._app.metrics, holder=rounds.holder, trouble=self._trouble)
        beside: set[asyncio.Task[None]] = set() if self._port is None else {asyncio.create_task(gauges.run())}
        try:
            await rounds.run(self._stop)
        finally:
            await end(beside)

    def _rounds(self) -> Rounds:
        return Rounds(self._app, interval=self._interval, lease=self._lease, trouble=self._trouble, pulse=self._pulse)

    async def _publish(self) -> None:
        await self._app.driver.publish_catalog(catalogue_of(self._app))
