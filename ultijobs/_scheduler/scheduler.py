"""The scheduler's life: opening, rounds until it is told to stop, giving the lead up."""

from __future__ import annotations

from ultijobs._durations import Duration, parse
from ultijobs._scheduler.application import Application, catalogue_of
from ultijobs._scheduler.rounds import Rounds
from ultijobs._service.patience import Patience
from ultijobs._service.stop import Stop, StopRequest
from ultijobs._service.trouble import Trouble

__all__ = ["Scheduler"]


class Scheduler:
    """Asks for the jobs of the tasks that are due, every `interval`; one process leads for `lease` at a time.

    Any number may run, alone or inside of workers: leadership saves work, and what makes a slot fire once is its row
    in the ledger, written in one transaction with its jobs. When the leader dies another leads within `lease` and makes
    up for what was missed, by the catch-up mode of each task.
    """

    def __init__(self, app: Application, *, interval: Duration = "1s", lease: Duration = "30s") -> None:
        self._app = app
        self._interval = parse(interval, what="Scheduler: interval", positive=True)
        self._lease = parse(lease, what="Scheduler: lease", positive=True)
        self._stop = StopRequest()
        self._trouble = Trouble("scheduler")

    def stop(self) -> None:
        """Ends `run` after what is being dispatched. Safe from any thread and signal handler, also before `run`."""
        self._stop.ask(Stop.DRAIN)

    async def run(self) -> None:
        """Works until `stop`, SIGTERM or ctrl-c; a second signal raises `KeyboardInterrupt` at the end.

        Waits for a database that is away. Raises `SchemaOutdated` for tables that do not fit this release.
        """
        patience = Patience(self._stop, self._trouble)
        with self._stop.on_signals():
            if await patience.answered("connecting", lambda: self._app.open(role="scheduler")):
                try:
                    if await patience.answered("publishing the catalogue", self._publish):
                        await self._rounds().run(self._stop)
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

    def _rounds(self) -> Rounds:
        return Rounds(self._app, interval=self._interval, lease=self._lease)

    async def _publish(self) -> None:
        await self._app.driver.publish_catalog(catalogue_of(self._app))
