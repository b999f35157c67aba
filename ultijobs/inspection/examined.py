"""What an `Inspector` says of the database itself, and of all that is wrong: a part of its class."""

from __future__ import annotations

from ultijobs._queue.driver import Driver
from ultijobs._queue.health import Health
from ultijobs.inspection.doctor import Diagnosis, Thresholds, examine
from ultijobs.inspection.skew import measured

__all__ = ["Examined"]


class Examined:
    """The calls of `Inspector` about the database and its diagnosis."""

    _driver: Driver

    async def health(self) -> Health:
        """The database itself, in at most four statements: sessions that hold back vacuum, dead rows, waits, budget."""
        return await measured(self._driver.inspect)

    async def examine(self, limits: Thresholds | None = None, *, outbox: Driver | None = None) -> Diagnosis:
        """Asks every check of `ultijobs doctor`, and changes nothing.

        `limits` says what is much; `outbox` is open on the database that holds the outbox, where that is another one.
        """
        return await examine(self._driver, limits, outbox=None if outbox is None else outbox.outbox)
