"""A backfill as a worker runs it: the handler of its job, from the gate to the last line of the ledger."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from ultijobs import _settings
from ultijobs._backfill.gate import Gate, misplaced
from ultijobs._backfill.pacing import Pacer
from ultijobs._backfill.patience import patiently
from ultijobs._backfill.reading import reader_of
from ultijobs._backfill.sweeping import Sweep
from ultijobs._connect import driver_for, tables_of
from ultijobs._execution.host import Host
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.backfills import PassRow, PassStart, PassStatus
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.driver import Driver
from ultijobs._retry import RetryPolicy
from ultijobs._steps.context import Context
from ultijobs._steps.tenancy import cross_tenant
from ultijobs.errors import Draining, JobLeaseLost, ValidationFailed

if TYPE_CHECKING:
    from ultijobs._definitions.backfill import BackfillHandle
    from ultijobs.postgres.tables import Tables

__all__ = ["Pass", "application_tables"]


class Application(Protocol):
    """What a pass needs of the application that declares it."""

    @property
    def driver(self) -> Driver: ...
    @property
    def outbox(self) -> str | None: ...
    @property
    def metrics(self) -> Metrics: ...


class Pass:
    """Runs the passes of one declaration. Only the claim of the job writes; a page is marked once it is handled."""

    def __init__(self, handle: BackfillHandle[Any], application: Application, pacer: Pacer | None = None) -> None:
        self._handle = handle
        self._application = application
        self._pacer = Pacer(handle.rate) if pacer is None else pacer
        self._metrics = application.metrics
        self._metrics.set(series.BACKFILL_RUNNING, 0, handle.name)
        self._metrics.add(series.BACKFILL_ROWS, handle.name, by=0)
        self.takes = frozenset({"input", "ctx", "claim", "host"})
        self.is_async = True
        self.step_timeout: timedelta | None = None
        self.event_poll: timedelta | None = None

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def queue(self) -> str:
        return self._handle.queue

    @property
    def retry(self) -> RetryPolicy:
        return self._handle.retry

    @property
    def timeout(self) -> timedelta | None:
        return self._handle.timeout

    def validate(self, text: str, /) -> dict[str, bool]:
        """The input of a pass: whether it repeats one that has completed."""
        try:
            force: Any = dict(json.loads(text) or {}).get("force", False)
        except (TypeError, ValueError):
            force = None
        if not isinstance(force, bool):
            raise ValidationFailed(f"backfill {self.name}: the input is {text:.100}, and not {{force: bool}}")
        return {"force": force}

    async def fn(self, input: dict[str, bool], ctx: Context[Any], claim: ClaimedJob, host: Host) -> None:
        """The body.

        Raises `BackfillEnvironment`, `BackfillMigrationPending` or `BackfillRunning`, and then leaves no line behind.
        """
        handle = self._handle
        settings = _settings.load()
        elsewhere = misplaced(handle.name, handle.environments, settings.environment)
        if elsewhere is not None:
            raise elsewhere
        if not input["force"] and await self._done_before(claim):
            return
        async with application_tables(self._application) as tables:
            too_early = await Gate(tables).unmigrated(handle.name, handle.requires)
            if too_early is not None:
                raise too_early
            start = PassStart(
                run_id=claim.run_id,
                job_id=claim.id,
                lease_no=claim.lease_no,
                name=handle.name,
                checksum=handle.checksum,
                app_version=settings.code_version,
                environment=settings.environment,
                forced=input["force"],
            )
            opened = await patiently(lambda: self._application.driver.backfills.begin(start))
            if opened is None:
                raise JobLeaseLost(f"the claim {claim.lease_no} of backfill {handle.name} is not held any more")
            if opened.status == PassStatus.COMPLETED:
                return
            self._tell_change(opened, claim, "began with")
            await self._sweep(ctx, start, opened, tables, host)

    async def _sweep(
        self, ctx: Context[Any], start: PassStart, opened: PassRow, tables: Tables | None, host: Host
    ) -> None:
        store, handle = self._application.driver.backfills, self._handle
        reason = f"backfill {handle.name} goes over all tenants"
        self._metrics.set(series.BACKFILL_RUNNING, 1, handle.name)
        try:
            with cross_tenant(reason) if handle.tenant == "none" else nullcontext():
                async with reader_of(handle, ctx, tables, batch=handle.batch) as reader:
                    sweep = Sweep(handle, ctx, start, opened, store, reader, self._pacer, self._metrics, host)
                    left = await sweep.run()
        except Draining:
            raise
        except Exception:
            with contextlib.suppress(Exception):
                await store.end(start, PassStatus.FAILED)
            raise
        finally:
            self._metrics.set(series.BACKFILL_RUNNING, 0, handle.name)
        await patiently(lambda: store.end(start, PassStatus.COMPLETED, remaining=left))

    async def _done_before(self, claim: ClaimedJob) -> bool:
        """True when another pass has completed; it is told, and so is that it was of another definition."""
        done = await patiently(lambda: self._application.driver.backfills.completed(self.name))
        if done is None or done.run_id == claim.run_id:
            return False
        self._tell(logging.INFO, "jobs.backfill.skipped", f"the run {done.run_id} has completed it", claim)
        self._tell_change(done, claim, "was completed by")
        return True

    def _tell_change(self, of: PassRow, claim: ClaimedJob, how: str) -> None:
        if of.checksum != self._handle.checksum:
            said = f"the run {of.run_id} {how} another definition, {of.checksum}; it is {self._handle.checksum} now"
            self._tell(logging.WARNING, "jobs.backfill.definition-changed", said, claim)

    def _tell(self, level: int, event: str, message: str, claim: ClaimedJob) -> None:
        emit(
            level,
            event,
            f"backfill {self.name}: {message}",
            job_id=claim.id,
            run_id=claim.run_id,
            name=claim.name,
            attempt=claim.attempt,
        )


@asynccontextmanager
async def application_tables(application: Application) -> AsyncGenerator[Tables | None]:
    """The tables of the application's own database: beside the queue, or where its outbox is."""
    if application.outbox is None:
        yield tables_of(application.driver)
        return
    elsewhere = tables_of(driver_for(application.outbox))
    try:
        yield elsewhere
    finally:
        if elsewhere is not None:
            await elsewhere.close()
