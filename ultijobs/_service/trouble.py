"""Says once that the database is away and once that it is back; what else keeps failing, ever more rarely."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ultijobs._log import RateLimit, emit
from ultijobs._service.failures import Failures
from ultijobs.errors import DriverUnavailable

__all__ = ["Trouble"]


class Trouble:
    """One per process, shared by all its loops and threads."""

    def __init__(self, worker_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._worker_id = worker_id
        self._limit = RateLimit(1.0)
        self._failures = Failures(clock=clock)
        self._lock = threading.Lock()
        self._since: float | None = None

    @property
    def away(self) -> bool:
        return self._since is not None

    @property
    def away_for(self) -> float | None:
        """For how many seconds the database has been away; None when it is not, as far as is known."""
        since = self._since
        return None if since is None else time.monotonic() - since

    def failed(self, event: str, doing: str, error: BaseException) -> None:
        """Reports a failed call: an outage once, when it begins; anything else under `event`.

        The traceback comes with the first line of a failure; while that stays the same the lines grow rarer.
        """
        if isinstance(error, DriverUnavailable):
            with self._lock:
                if self._since is not None:
                    return
                self._since = time.monotonic()
            emit(
                logging.WARNING,
                "jobs.database.away",
                f"{doing}: {error.cause}",
                worker_id=self._worker_id,
                code=error.code,
            )
            return
        told = self._failures.add(event, doing, error)
        if told is not None:
            often = "" if told.count == 1 else f" ({told.count} times in {told.seconds:.0f} s)"
            emit(
                logging.ERROR,
                event,
                f"{doing}: {type(error).__qualname__}: {error}{often}",
                exc_info=error if told.first else None,
                worker_id=self._worker_id,
                code=getattr(error, "code", None),
            )

    def worked(self, doing: str) -> None:
        """What may have failed before, under these words, has succeeded; says so when a failure was told."""
        over = self._failures.over(doing)
        if over is not None:
            times = "once" if over.count == 1 else f"{over.count} times"
            emit(
                logging.INFO,
                "jobs.trouble.over",
                f"{doing} works again; it failed {times} in {over.seconds:.0f} s",
                worker_id=self._worker_id,
            )

    def repeated(
        self, level: int, event: str, message: str, error: BaseException | None = None, **fields: object
    ) -> None:
        """Logs under `event` unless it did within the last second."""
        held_back = self._limit.admit(event)
        if held_back is None:
            return
        more = f" ({held_back} more since the last line)" if held_back else ""
        emit(
            level,
            event,
            message + more,
            exc_info=None if isinstance(error, DriverUnavailable) else error,
            worker_id=self._worker_id,
            code=getattr(error, "code", None),
            **fields,
        )

    def answered(self) -> None:
        """The database answered."""
        if not self.away:
            return
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            away = time.monotonic() - since
            emit(
                logging.INFO,
                "jobs.database.back",
                f"the database answers again, after {away:.1f} s",
                worker_id=self._worker_id,
            )
