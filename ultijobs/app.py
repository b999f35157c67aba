"""`App`: what one application declares, where its queue is, and the way into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from types import MappingProxyType, TracebackType
from typing import Any, Generic, Literal, Self, overload

from typing_extensions import TypeVar, Unpack

from ultijobs import _settings
from ultijobs._backfill.asking import Wanted, ask
from ultijobs._connect import driver_for
from ultijobs._definitions import ambient
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.bounds import Limits, Retention, Sizes
from ultijobs._definitions.handle import JobHandle, Request
from ultijobs._definitions.options import AsyncOptions, SyncOptions
from ultijobs._definitions.registry import Declared, Registry
from ultijobs._enqueue import composing
from ultijobs._enqueue.asking import Asker
from ultijobs._enqueue.block import TransactionBlock
from ultijobs._enqueue.opening import Opening
from ultijobs._enqueue.publishing import Publisher
from ultijobs._enqueue.staging import Staging
from ultijobs._execution.report import Report
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import Enqueued
from ultijobs._steps.context import Context
from ultijobs.errors import DriverUnavailable, Invariant, Retry
from ultijobs.typing import AsyncTx, Duration, SyncTx

__all__ = ["App"]

S = TypeVar("S", default=None)
In = TypeVar("In")


class App(Generic[S]):
    """The composition root: declarations, a driver, and what all runs share.

    `async with app` opens it on the running loop, `with app` for sync code; both make it the ambient application of the
    block. The first `enqueue_sync` opens it by itself on a thread of its own, and the end of the process closes that.

    Args:
        jobs: Modules, or handles of jobs and backfills.
        tasks: Modules, or handles of tasks.
        driver: A URL or a driver; None takes the URL from the settings when it is opened.
        schema: Of the tables, when `driver` is a URL or None.
        lifespan: Makes the services of a worker process, once.
        context: May add to the services for one attempt; a failure of it is a failure of the attempt.
        limits: How much runs at once.
        sizes: The most bytes of what is stored.
        retention: How long ended work is kept.
        outbox: The database of the application, when the queue lives elsewhere.
        transactions: With "required" an enqueue outside of a transaction is `OutboxNoTx`.
        classify: What a foreign exception means for the attempt, by class.
        report: Called once per failed attempt.
        redact: Patterns of keys whose values no screen shows.

    """

    def __init__(
        self,
        *,
        jobs: Iterable[Declared] = (),
        tasks: Iterable[Declared] = (),
        driver: str | Driver | None = None,
        schema: str = "public",
        lifespan: Callable[[], AbstractAsyncContextManager[S]] | None = None,
        context: Callable[[S, Context[S]], S | Awaitable[S]] | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        sizes: Sizes = Sizes(),  # noqa: B008 - a frozen value
        retention: Retention = Retention(),  # noqa: B008 - a frozen value
        outbox: str | None = None,
        transactions: Literal["optional", "required"] = "optional",
        classify: Mapping[type[Exception], Retry] = MappingProxyType({}),
        report: Report | None = None,
        redact: Sequence[str] = (),
    ) -> None:
        self.registry = Registry(jobs, tasks)
        self.schema = composing.schema(schema)
        self.lifespan = composing.function(lifespan, "lifespan")
        self.context = composing.function(context, "context")
        self.limits = composing.instance(limits, Limits, "limits")
        self.sizes = composing.instance(sizes, Sizes, "sizes")
        self.retention = composing.instance(retention, Retention, "retention")
        self.outbox = composing.outbox(outbox)
        self.transactions = composing.transactions(transactions)
        self.classify = composing.classes(classify)
        self.report = composing.function(report, "report")
        self.redact = composing.patterns(redact)
        self.metrics = Metrics()
        """What this process has counted for the application."""
        self._settle_at(Opening(_maker(composing.driver(driver), self.schema)))
        ambient.enlist(self)

    def __repr__(self) -> str:
        return f"<App of {len(self.registry.jobs)} jobs>"

    @property
    def driver(self) -> Driver:
        """The driver, whether it is open or not."""
        return self._opening.driver

    @property
    def closed(self) -> bool:
        """True when it was open and is not any more."""
        return self._opening.closed

    @property
    def opened(self) -> bool:
        """True when it is open on the running loop."""
        return self._opening.here

    def ambient(self) -> AbstractContextManager[None]:
        """Makes it the ambient application of the block, open or not."""
        return ambient.bound(self)

    def registered(self, handle: object) -> bool:
        """True when this very handle was declared to it."""
        return self.registry.holds(handle)

    @contextmanager
    def staged(self, opening: Opening) -> Generator[None]:
        """Keeps its queue in another place for the block, and stages nothing in an outbox: for `ultijobs.testing`."""
        kept, outbox = self._opening, self.outbox
        self.outbox = None
        self._settle_at(opening)
        try:
            with ambient.staged(self):
                yield
        finally:
            self.outbox = outbox
            self._settle_at(kept)

    def _settle_at(self, opening: Opening) -> None:
        self._opening = opening
        outbox = None if self.outbox is None else Staging(self.outbox, self.schema)
        self._asker = Asker(self, opening, outbox, required=self.transactions == "required")
        self._publisher = Publisher(self, opening, outbox)

    # -- opening ---------------------------------------------------------------------------------------
    async def open(self, role: str = "app") -> None:
        """Opens the driver on the running loop; each call needs its `close`. Prefer `async with app`.

        `role` is told to the server as the application's name. Raises `SchemaOutdated` and `DriverUnavailable`.
        """
        await self._opening.enter(role)

    async def close(self) -> None:
        """Closes the driver when nobody else holds it open; enqueues under way are stored first."""
        await self._opening.leave()

    async def __aenter__(self) -> Self:
        await self.open()
        ambient.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ambient.leave(self)
        await self.close()

    def __enter__(self) -> Self:
        self._opening.enter_sync()
        ambient.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ambient.leave(self)
        self._opening.leave_sync()

    # -- enqueueing ------------------------------------------------------------------------------------
    @overload
    async def enqueue(
        self, handle: JobHandle[None], input: None = None, **options: Unpack[AsyncOptions]
    ) -> Enqueued: ...
    @overload
    async def enqueue(self, handle: JobHandle[In], input: In, **options: Unpack[AsyncOptions]) -> Enqueued: ...
    async def enqueue(self, handle: JobHandle[Any], input: Any = None, **options: Any) -> Enqueued:
        """Stores one job of `handle`; see `JobHandle.enqueue`."""
        return await self._asker.one(handle, input, options)

    @overload
    def enqueue_sync(self, handle: JobHandle[None], input: None = None, **options: Unpack[SyncOptions]) -> Enqueued: ...
    @overload
    def enqueue_sync(self, handle: JobHandle[In], input: In, **options: Unpack[SyncOptions]) -> Enqueued: ...
    def enqueue_sync(self, handle: JobHandle[Any], input: Any = None, **options: Any) -> Enqueued:
        """Stores one job of `handle`, for sync code; see `JobHandle.enqueue_sync`."""
        return self._asker.many_sync(handle, (input,), options, call="enqueue_sync")[0]

    async def enqueue_many(
        self, handle: JobHandle[In], inputs: Iterable[In | Request[In]], **options: Unpack[AsyncOptions]
    ) -> list[Enqueued]:
        """Stores all of them in one transaction or none; see `JobHandle.enqueue_many`."""
        return await self._asker.many(handle, inputs, {**options})

    def enqueue_many_sync(
        self, handle: JobHandle[In], inputs: Iterable[In | Request[In]], **options: Unpack[SyncOptions]
    ) -> list[Enqueued]:
        """`enqueue_many` for sync code; see `JobHandle.enqueue_many_sync`."""
        return self._asker.many_sync(handle, inputs, {**options}, call="enqueue_many_sync")

    async def enqueue_backfill(self, handle: BackfillHandle[Any], *, force: bool = False) -> Enqueued:
        """Asks for one pass of `handle`; see `BackfillHandle.enqueue`."""
        if not self.registry.holds(handle):
            raise Invariant(
                f"enqueue_backfill: {handle!r:.100} is no backfill that is registered here",
                fix="list it in App(jobs=[…])",
            )
        return await self._opening.call(lambda driver: ask(driver, Wanted.of(handle, self.limits), force=force))

    def transaction(self, tx: AsyncTx | SyncTx, /) -> TransactionBlock:
        """Binds a transaction of the caller's: enqueues of this application in the block join it.

        `async with app.transaction(connection):`, or `with` for a sync one. The block neither commits nor rolls back.
        """
        return TransactionBlock(self, tx)

    # -- events ----------------------------------------------------------------------------------------
    async def publish(
        self,
        event: str,
        payload: object = None,
        *,
        key: str | None = None,
        ttl: Duration = "7d",
        tx: AsyncTx | Literal[False] | None = None,
    ) -> None:
        """Publishes an event: to the runs that wait for it, and for `ttl` to those that come to wait for it.

        With `tx` (or inside `transaction`) it exists when that commits, and then wakes its runs; where the queue is
        elsewhere it is staged in the outbox, and relayed after the commit. Else it is stored when this returns. A
        payload is plain JSON values, a model or a dataclass. Raises `PayloadInvalid` with a path for one that cannot be
        stored or is larger than `sizes.input`, `Invariant` for a name or a key that is none.
        """
        await self._publisher.publish(event, payload, key, ttl, tx)

    def publish_sync(
        self,
        event: str,
        payload: object = None,
        *,
        key: str | None = None,
        ttl: Duration = "7d",
        tx: SyncTx | Literal[False] | None = None,
    ) -> None:
        """`publish` for sync code."""
        self._publisher.publish_sync(event, payload, key, ttl, tx)


def _maker(given: str | Driver | None, schema: str) -> Callable[[], Driver]:
    def make() -> Driver:
        if isinstance(given, str):
            return driver_for(given, schema)
        if given is not None:
            return given
        settings = _settings.load()
        if settings.database_url is None:
            raise DriverUnavailable(
                "no database is set", fix="export ULTIJOBS_DATABASE_URL=postgresql://USER@HOST/DB (or embedded:DIR)"
            )
        chosen = settings.schema if schema == "public" and settings.schema is not None else schema
        return driver_for(settings.database_url, composing.schema(chosen))

    return make
