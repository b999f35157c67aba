"""The `Inspector`: what the command line, the cockpit and scripts ask and do, over any driver."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._connect import driver_for
from ultijobs._definitions import checks
from ultijobs._durations import Duration
from ultijobs._queue.activity import ActivityRow
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import EventPage
from ultijobs._queue.lanes import capped_name
from ultijobs._queue.records import JobState
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import (
    Cause,
    Count,
    JobPage,
    JobRow,
    LeaseRow,
    QueueRow,
    Sort,
    Stats,
    Tally,
    WaitingOn,
    WorkerRow,
)
from ultijobs._queue.where import ANY, Field, Where
from ultijobs._text import clip
from ultijobs.errors import ActUnknown, Invariant, JobUnknown
from ultijobs.inspection.applying import Actor, apply_plan
from ultijobs.inspection.backfilled import Backfilled
from ultijobs.inspection.examined import Examined
from ultijobs.inspection.filter import parse_where
from ultijobs.inspection.kinds import kinds_checked
from ultijobs.inspection.leases import leases
from ultijobs.inspection.models import (
    Action,
    ActOutcome,
    JobDetail,
    Overview,
    Plan,
    PlanOptions,
    Published,
    Target,
    Why,
)
from ultijobs.inspection.overview import overview
from ultijobs.inspection.plans import make_plan, target_of
from ultijobs.inspection.policies import policy_of, remaining_delays
from ultijobs.inspection.pruned import Pruned
from ultijobs.inspection.publishing import publish
from ultijobs.inspection.redaction import patterns_of, redact, redact_output
from ultijobs.inspection.references import only, tail_of, too_short, whole_id
from ultijobs.inspection.said import MOST_ACTOR, reason_of
from ultijobs.inspection.scheduled import Scheduled
from ultijobs.inspection.staged import MOST_ROWS, Staged
from ultijobs.inspection.undoing import find_act
from ultijobs.inspection.unheard import Unheard, unheard
from ultijobs.inspection.why import Gates, explain, lapsed

__all__ = ["Inspector"]

_GATED: Final = frozenset({WaitingOn.PAUSED, WaitingOn.NO_WORKER, WaitingOn.SLOT, WaitingOn.TENANT, WaitingOn.RATE})


@kinds_checked
class Inspector(Scheduled, Backfilled, Staged, Examined, Pruned):
    """Reads and acts on an open driver.

    Every read is bounded, takes no lock and changes nothing. Every act is a `plan` first, is applied in batches, and
    leaves a row in the activity table that says who, from where, what, why and with which result. Times are the
    database's. Raises `DriverUnavailable` when the database is away.
    """

    def __init__(self, driver: Driver, *, actor: str | None = None, source: str = "api") -> None:
        """`driver` is open already. `actor` is who acts, by default login@host; `source` is `cli`, `tui` or `api`."""
        self._driver = driver
        self._store = driver.inspect
        self._actor = Actor(clip(actor or _login(), MOST_ACTOR), source)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, url: str, schema: str = "public", *, role: str = "cli", actor: str | None = None, source: str = "api"
    ) -> AsyncGenerator[Inspector]:
        """Opens the driver of `url` for the block. `role` is told to the server as `ultijobs-<role>`.

        Raises `SchemaOutdated` for a database that is not migrated and `DriverUnavailable` for one that is away.
        """
        driver = driver_for(url, schema)
        await driver.open(role)
        try:
            yield cls(driver, actor=actor, source=source)
        finally:
            await driver.close()

    @property
    def driver(self) -> Driver:
        """The open driver behind it."""
        return self._driver

    @property
    def actor(self) -> str:
        """Who acts, as the activity table keeps it."""
        return self._actor.name

    async def now(self) -> datetime:
        """The database's clock."""
        return await self._store.now()

    async def overview(self, *, tenant: str | None = None) -> Overview:
        """What is stuck, in at most six statements; a detector that fails is a line of its own."""
        return await overview(self._store, self._driver.schedule, tenant)

    async def stats(self, *, queue: str | None = None, tenant: str | None = None) -> Stats:
        """Counts per queue and state. Each row is in exactly one of them; `ready` means due."""
        return await self._store.stats(queue, tenant)

    async def queues(self) -> list[QueueRow]:
        """Every queue that a job, a worker, a declaration or a pause names."""
        return await self._store.queues()

    async def jobs(
        self, where: Where | str = ANY, *, sort: Sort = Sort.NEWEST, after: str | None = None, limit: int = 100
    ) -> JobPage:
        """One page of jobs; pass its `next` as `after` to get the page behind it.

        A page may be short, or empty, while `next` is set: the scan of one statement is bounded.
        Raises `FilterInvalid` for a text that cannot be read and `Invariant` for a limit outside of 1 to 1,000.
        """
        return await self._store.jobs(
            _where(where), sort=sort, after=after, limit=checks.whole(limit, "limit", least=1, most=MOST_ROWS)
        )

    async def count(self, where: Where | str, *, cap: int = 10_000) -> Count:
        """How many jobs match, counted up to `cap`."""
        return await self._store.count(_where(where), cap=cap)

    async def find(self, ref: str, *, tenant: str | None = None) -> UUID:
        """The job that `ref` means: a full id, or an unambiguous tail of at least 6 hex digits.

        Raises `JobUnknown`, also for a job of another tenant, and `Invariant` for a tail that several ids share.
        """
        whole, tail = whole_id(ref), tail_of(ref)
        found: list[UUID] = []
        if whole is not None:
            found = [whole] if await self._store.job(whole, tenant=tenant) is not None else []
        elif tail is not None:
            found = await self._store.resolve(tail, tenant=tenant)
        if not found:
            fix = "give at least the last 6 hex digits" if too_short(ref) else JobUnknown.default_fix
            raise JobUnknown(f"there is no job {ref!r:.100}", fix=fix)
        return only(ref, found)

    async def find_act(self, ref: str) -> UUID:
        """The act that `ref` means: a full id, or an unambiguous tail among the newest thousand.

        Raises `ActUnknown`, and `Invariant` for a tail that several share. Whether a full id exists, its plan says.
        """
        whole, tail = whole_id(ref), tail_of(ref)
        if whole is not None:
            return whole
        found = [] if tail is None else await find_act(self._driver, tail)
        if not found:
            raise ActUnknown(f"there is no act {ref!r:.100}")
        return only(ref, found)

    async def job(self, id: UUID, *, tenant: str | None = None, with_input: bool = False) -> JobDetail:
        """One job with its steps, attempts and the delays still to come. Raises `JobUnknown`.

        The input is left out unless asked for. Values under masked keys are hidden in it and in what steps returned.
        """
        row = await self._row(id, tenant)
        catalog = await self._store.catalog()
        text = await self._store.input(id) if with_input else None
        patterns = patterns_of(catalog)
        return JobDetail(
            row=row,
            steps=[redact_output(step, patterns) for step in await self._store.steps(row.run_id)],
            attempts=await self._store.attempts(row.run_id),
            retry_delays_ms=remaining_delays(row, policy_of(row.name, catalog)),
            input=None if text is None else redact(text, patterns),
            backfill=next(iter(await self.passes(run_id=row.run_id, limit=1)), None),
        )

    async def why(self, id: UUID, *, tenant: str | None = None) -> Why:
        """Why the job is where it is, since when, who holds it and what frees it. Raises `JobUnknown`."""
        row = await self._row(id, tenant)
        steps = await self._store.steps(row.run_id) if row.state == JobState.SUSPENDED else []
        now = await self._store.now()
        gates = Gates()
        if row.waiting_on in _GATED or lapsed(row, now):
            capped = capped_name(row.lane) if row.waiting_on is WaitingOn.SLOT else None
            slots = [] if capped is None else await self._store.slots(capped)
            gates = Gates(await self._store.queues(), await self._store.workers(), slots)
        return explain(row, steps, gates, now)

    async def unheard(self, where: Where | str) -> list[Unheard]:
        """The queues, jobs and tenants of a filter that nothing is known under, live or of the newest history."""
        return await unheard(self._store, _where(where))

    async def causes(self, where: Where | str = "state:dead,failed", *, limit: int = 50) -> list[Cause]:
        """Stopped jobs grouped by stop reason and fingerprint, the largest first."""
        return await self._store.causes(_where(where), limit=limit)

    async def tally(self, where: Where | str = "state:dead,failed", *, by: Field, limit: int = 50) -> list[Tally]:
        """Jobs outside of history by tenant, queue or job, the most first, of at most 10,000 that match.

        Raises `Invariant` for a field that is none of the three.
        """
        if by not in {Field.TENANT, Field.QUEUE, Field.JOB}:
            raise Invariant(f"jobs are not counted by {by}", fix="count by Field.TENANT, Field.QUEUE or Field.JOB")
        return await self._store.tally(_where(where), by, limit=limit)

    async def leases(self, where: Where | str = ANY, *, limit: int = 200) -> list[LeaseRow]:
        """Claims in flight, all or those of a filter; the lease that ends first in front."""
        return await leases(self._store, _where(where), limit)

    async def workers(self) -> list[WorkerRow]:
        """Worker processes that beat within retention, gone ones included."""
        return await self._store.workers()

    async def catalog(self, kind: str | None = None) -> list[CatalogEntry]:
        """What workers and `migrate --app` declared last."""
        return await self._store.catalog(kind)

    async def activity(self, *, after: UUID | None = None, limit: int = 100) -> list[ActivityRow]:
        """What operators did, newest first; `after` is the id of the last row of the page before."""
        return await self._store.activity(after=after, limit=limit)

    async def events(
        self, *, name: str | None = None, key: str | None = None, after: UUID | None = None, limit: int = 100
    ) -> EventPage:
        """Published events, newest first; `after` is the `next` of the page before. Payloads are left out."""
        return await self._driver.events.page(name=name, key=key, after=after, limit=limit)

    async def publish(
        self,
        event: str,
        payload: object = None,
        *,
        key: str | None = None,
        ttl: Duration = "7d",
        reason: str | None = None,
    ) -> Published:
        """Publishes an event of plain JSON values, as `App.publish` does, with a row in the activity table.

        Raises `PayloadInvalid` for what cannot be stored or is larger than 1 MiB, `Invariant` for no name or key.
        """
        return await publish(self._driver, self._actor, event, payload, key=key, ttl=ttl, reason=reason_of(reason))

    async def plan(
        self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions | None = None
    ) -> Plan:
        """What an act would do; nothing is changed. A text is a filter, a queue, a worker or an act, by the kind.

        Raises `FilterInvalid` for an empty filter, `Invariant` for a target that does not fit, `WorkerUnknown`,
        `QueueUnknown`, `ActUnknown`, and `NotUndoable` for an act of which nothing can be taken back.
        """
        chosen = options or PlanOptions()
        return await make_plan(self._driver, action, target_of(action, target, chosen), chosen)

    async def apply(
        self,
        plan: Plan,
        *,
        on_progress: Callable[[int, int | None], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> ActOutcome:
        """Carries `plan` out in batches; rows touched after its `as_of` are left alone.

        `on_progress` gets rows so far and the total where it is known; `stop` is asked between batches.
        """
        return await apply_plan(self._driver, plan, self._actor, on_progress=on_progress, stop=stop)

    async def _row(self, id: UUID, tenant: str | None) -> JobRow:
        row = await self._store.job(id, tenant=tenant)
        if row is None:
            raise JobUnknown(f"there is no job {id}")
        return row


def _where(where: Where | str) -> Where:
    return parse_where(where) if isinstance(where, str) else where


def _login() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
