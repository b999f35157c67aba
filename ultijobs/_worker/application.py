"""What a worker takes from an application; the composition root itself stays out of its sight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ultijobs import _settings
from ultijobs._backfill.passes import Pass
from ultijobs._definitions.ambient import Application as Ambient
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.bounds import Limits, Retention, Sizes
from ultijobs._definitions.catalogue import catalogue
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.registry import Registry
from ultijobs._execution.classify import Classifier
from ultijobs._execution.host import Handler, Host
from ultijobs._execution.report import Report
from ultijobs._log import emit
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry
from ultijobs._release import release
from ultijobs._steps.context import Context
from ultijobs._steps.store import StepStore
from ultijobs._steps.threads import Threads
from ultijobs._worker.heartbeat import Identity
from ultijobs._worker.settings import Settings
from ultijobs.errors import JobConcurrencyUnenforceable, Retry

__all__ = ["Application", "catalogue_of", "handlers_of", "host_of", "identity_of", "refuse_unkept_caps"]


class Application(Ambient, Protocol):
    """The part of `App` that a worker uses."""

    @property
    def registry(self) -> Registry: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def sizes(self) -> Sizes: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def outbox(self) -> str | None: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def schema(self) -> str: ...
    @property
    def redact(self) -> Sequence[str]: ...
    @property
    def classify(self) -> Mapping[type[Exception], Retry]: ...
    @property
    def report(self) -> Report | None: ...
    @property
    def lifespan(self) -> Callable[[], AbstractAsyncContextManager[Any]] | None: ...
    @property
    def context(self) -> Callable[[Any, Context[Any]], Any | Awaitable[Any]] | None: ...
    async def open(self, role: str = "app") -> None: ...
    async def close(self) -> None: ...


def refuse_unkept_caps(app: Application) -> None:
    """Raises `JobConcurrencyUnenforceable`, naming every job with a cap that the driver cannot keep."""
    capped = [name for name, handle in app.registry.jobs.items() if handle.concurrency is not None]
    if capped and not app.driver.keeps_slots:
        listed = ", ".join(capped)
        raise JobConcurrencyUnenforceable(
            f"a cap of the fleet is declared by {listed}, and {app.driver.url} has no slots to keep it with",
            fix=f"remove concurrency= from {listed}",
        )


def identity_of(app: Application, settings: Settings) -> Identity:
    """Who the worker is and what it serves."""
    declared = tuple(sorted({handle.queue for handle in _declared(app)}))
    queues = declared if settings.queues is None else settings.queues
    for queue in queues:
        if queue not in declared:
            emit(
                logging.WARNING,
                "jobs.worker.queue-undeclared",
                f"no job of this application declares the queue {queue!r}; there are {', '.join(declared) or 'none'}",
                worker_id=settings.worker_id,
            )
    around = _settings.load()
    names = tuple(handle.name for handle in _declared(app) if handle.queue in queues)
    return Identity(
        worker_id=settings.worker_id,
        version=release(),
        code_version=around.code_version,
        environment=around.environment,
        queues=queues,
        names=names,
        concurrency=min(settings.concurrency, app.limits.per_process or settings.concurrency),
        lease=settings.lease,
    )


def _declared(app: Application) -> list[JobHandle[Any] | BackfillHandle[Any]]:
    return [*app.registry.jobs.values(), *app.registry.backfills.values()]


def handlers_of(app: Application) -> list[Handler]:
    """What this worker runs, by claims: jobs, and passes of backfills."""
    passes = [Pass(handle, app) for handle in app.registry.backfills.values()]
    return [*app.registry.jobs.values(), *passes]


def catalogue_of(app: Application) -> list[CatalogEntry]:
    around = _settings.load()
    return catalogue(
        app.registry,
        redact=app.redact,
        retention=app.retention,
        limits=app.limits,
        code_version=around.code_version,
        environment=around.environment,
    )


def host_of(
    app: Application,
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    threads: Threads,
    services: Any,
    steps: StepStore,
) -> Host:
    """What all attempts of this worker share."""
    return Host(
        worker_id=settings.worker_id,
        loop=loop,
        steps=steps,
        threads=threads,
        classifier=Classifier(dict(app.classify.items())),
        report=app.report,
        services=services,
        context=app.context,
        grace=settings.grace,
        output_limit=app.sizes.output,
        error_limit=app.sizes.error,
    )
