"""What a handler is told about its run, given as `ctx` and ambient as `current()`."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, Generic, TypeVar, cast
from uuid import UUID

from ultijobs._definitions.actor import Actor
from ultijobs._log import RESERVED
from ultijobs._queue.claims import ClaimedJob, Progress
from ultijobs._steps import guard
from ultijobs._steps.signal import StopSignal
from ultijobs._text import clip
from ultijobs.errors import Invariant
from ultijobs.typing import AsyncTx, SyncTx

__all__ = ["RUNNING", "STEP", "Context", "StepScope", "current"]

S = TypeVar("S")

MESSAGE_LIMIT: Final = 500

_log: Final = logging.getLogger("ultijobs.job")
_making: Final = threading.Lock()


class StepScope:
    """The step whose function is running."""

    __slots__ = ("_attempt", "_signal", "name", "run_id")

    def __init__(self, name: str, run_id: UUID, attempt: StopSignal) -> None:
        self.name = name
        self.run_id = run_id
        self._attempt = attempt
        self._signal: StopSignal | None = None

    @property
    def signal(self) -> StopSignal:
        """Set when the step is over its timeout, and when its attempt is to end."""
        if self._signal is None:
            with _making:
                self._signal = self._signal or StopSignal(self._attempt)
        return self._signal

    @property
    def key(self) -> str:
        """`<run_id>:<name>`, the same in every attempt: send it as an idempotency header."""
        return f"{self.run_id}:{self.name}"


RUNNING: Final[contextvars.ContextVar[Context[Any]]] = contextvars.ContextVar("ultijobs-running")
STEP: Final[contextvars.ContextVar[StepScope | None]] = contextvars.ContextVar("ultijobs-step", default=None)


class Context(Generic[S]):
    """One attempt of one run: its ids, its tenant, the application's services, the signal to stop.

    The same object is `ultijobs.current()` everywhere below the handler, in its tasks and in its threads.
    """

    __slots__ = ("_job", "_log", "_told_progress", "children", "last_progress", "services", "signal")

    def __init__(self, job: ClaimedJob, services: S, signal: StopSignal) -> None:
        self._job = job
        self._told_progress = False
        self._log: logging.LoggerAdapter[logging.Logger] | None = None
        self.services = services
        self.signal = signal
        self.last_progress: Progress | None = None
        self.children: set[asyncio.Task[Any]] | None = set()
        """The tasks that were made in this attempt and have not ended; None once it is over."""

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def run_id(self) -> UUID:
        """The same over all attempts and retries of the job; what its steps are recorded under."""
        return self._job.run_id

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def attempt(self) -> int:
        """Counted from 1; suspensions and hand-backs do not count."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        return self._job.max_attempts

    @property
    def tenant(self) -> str | None:
        """The tenant that the declaration derived when the job was enqueued."""
        return self._job.tenant_id

    @property
    def crossing(self) -> str | None:
        """The reason of the `cross_tenant` block that the calling code is in; None outside of one."""
        return guard.crossing()

    async def guard(self, tx: AsyncTx, /) -> None:
        """Tells the database whose run this is, for the rest of the transaction `tx`, so that policies can hold it.

        Sets `ultijobs.tenant` to the run's tenant, empty when it has none, and `ultijobs.cross_tenant` to the reason
        in a `cross_tenant` block, else empty. Raises `Invariant` when no transaction is open.
        """
        await guard.guard(tx, self.tenant)

    def guard_sync(self, tx: SyncTx, /) -> None:
        """`guard` for a transaction of sync code."""
        guard.guard_sync(tx, self.tenant)

    @property
    def actor(self) -> Actor | None:
        """Who enqueued the job; attribution only."""
        job = self._job
        return None if not job.enqueued_by else Actor(job.enqueued_by)

    @property
    def step(self) -> StepScope:
        """The step whose function is running here. Raises `Invariant` outside of one."""
        scope = STEP.get()
        if scope is None:
            raise Invariant(
                f"job {self.name}: no step is running here",
                fix="read current().step inside of the function that step.run calls",
            )
        return scope

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the ids of this attempt, and what they are given as `extra`, under any name."""
        if self._log is None:
            job = self._job
            fields = {
                "job_id": job.id,
                "run_id": job.run_id,
                "name": job.name,
                "attempt": job.attempt,
                "lease_no": job.lease_no,
            }
            self._log = _JobLog(_log, fields)
        return self._log

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Shows how far the attempt is, to operators. The last value wins and is written with the next renewal.

        Never raises: a value that cannot be shown is ignored, and the first one of an attempt is logged.
        """
        try:
            self.last_progress = Progress(
                _finite(done),
                None if total is None else _finite(total),
                None if message is None else clip(str(message), MESSAGE_LIMIT),
            )
        except Exception as error:  # noqa: BLE001 - a display must not fail the work that it shows
            if not self._told_progress:
                self._told_progress = True
                self.log.warning(
                    "progress of %s is unusable: %s",
                    self.name,
                    type(error).__name__,
                    extra={"event": "jobs.progress.ignored"},
                )

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Makes `task` one of the attempt's own: it ends with the attempt."""
        if self.children is not None and not task.done():
            self.children.add(task)
            task.add_done_callback(self.children.discard)


def current() -> Context[Any]:
    """The context of the attempt that the calling code runs in. Raises `Invariant` outside of one."""
    try:
        return RUNNING.get()
    except LookupError:
        raise Invariant(
            "current() was called outside of a running job", fix="call it in a handler, or in what a handler calls"
        ) from None


def _finite(value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(number)
    return number


class _JobLog(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        given = dict(cast("Mapping[str, Any]", kwargs.get("extra") or {}))
        fields = {**given, **(self.extra or {})}
        own = {key: value for key, value in given.items() if key not in RESERVED}
        kwargs["extra"] = {"event": "jobs.handler", **own, "fields": {k: v for k, v in fields.items() if k != "event"}}
        return msg, kwargs
