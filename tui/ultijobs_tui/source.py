"""Where the cockpit's data comes from: a protocol, and the live one on `Inspector`. Reads are one at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from ultijobs.errors import DriverUnavailable, UltijobsError
from ultijobs.inspection import (
    Action,
    ActOutcome,
    Inspector,
    JobDetail,
    Overview,
    Plan,
    PlanOptions,
    QueueRow,
    Target,
    parse_where,
)
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.link import explain

__all__ = ["LiveSource", "Source", "title_of"]

_T = TypeVar("_T")
_OVERVIEW_EVERY = 10.0
_SLOW = frozenset({"QueryCanceledError", "LockNotAvailableError"})
"""One statement ran into its limit; the connection is as good as before."""


class Source(Protocol):
    """What the cockpit needs: bounded reads, plans and acts."""

    @property
    def title(self) -> str:
        """Where the data is, without any password."""
        ...

    @property
    def actor(self) -> str:
        """Who acts, as the activity log keeps it."""
        ...

    @property
    def live(self) -> bool:
        """False when nothing moves by itself and frames are fed by hand."""
        ...

    async def fetch(self, needs: Needs) -> Frame: ...
    async def find(self, ref: str) -> UUID: ...
    async def input(self, id: UUID) -> str | None: ...
    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan: ...
    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome: ...
    def subscribe(self, on_hint: Callable[[], None]) -> AbstractAsyncContextManager[None]: ...


class LiveSource:
    """The queue itself. One part that fails is told in `failures`; a lost connection fails the whole frame."""

    def __init__(self, inspector: Inspector, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._inspector = inspector
        self._monotonic = monotonic
        self._overview: Overview | None = None
        self._overview_at: float | None = None
        self._overview_of: str | None = None

    @property
    def title(self) -> str:
        return title_of(self._inspector.driver.url)

    @property
    def actor(self) -> str:
        return self._inspector.actor

    @property
    def live(self) -> bool:
        return True

    async def fetch(self, needs: Needs) -> Frame:
        began = self._monotonic()
        failures: dict[str, str] = {}
        overview = await self._bars(needs, failures)
        inspector = self._inspector
        queues = causes = tally = page = job = why = watch = None
        tenant = needs.tenant
        if needs.queues:
            queues = await _part("queues", failures, lambda: self._queues(tenant))
        if (where := needs.causes) is not None:
            causes = await _part("causes", failures, lambda: inspector.causes(parse_where(where, tenant=tenant)))
        if (counted := needs.tally) is not None:
            tally = await _part(
                "tally",
                failures,
                lambda: inspector.tally(parse_where(counted.where, tenant=tenant), by=counted.by),
            )
        if (ask := needs.page) is not None:
            page = await _part(
                "jobs",
                failures,
                lambda: inspector.jobs(
                    parse_where(ask.where, tenant=tenant), sort=ask.sort, after=ask.after, limit=ask.limit
                ),
            )
        if (wanted := needs.job) is not None:
            job = await _part("job", failures, lambda: inspector.job(wanted, tenant=tenant))
        if (asked := needs.why) is not None:
            why = await _part("why", failures, lambda: inspector.why(asked, tenant=tenant))
        if (watched := needs.watch) is not None:
            watch = await self._watch(watched, job)
        return Frame(
            needs=needs,
            as_of=await self._now(overview if needs.overview else None, page.as_of if page else None),
            took_ms=(self._monotonic() - began) * 1000,
            overview=overview,
            overview_at=None if overview is None else overview.as_of,
            queues=queues,
            causes=causes,
            tally=tally,
            page=page,
            job=job,
            why=why,
            watch=watch,
            failures=failures,
        )

    async def find(self, ref: str) -> UUID:
        return await self._inspector.find(ref)

    async def input(self, id: UUID) -> str | None:
        return (await self._inspector.job(id, with_input=True)).input

    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan:
        return await self._inspector.plan(action, target, options)

    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome:
        self._overview_at = None
        return await self._inspector.apply(plan, on_progress=on_progress, stop=stop)

    def subscribe(self, on_hint: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        return self._inspector.driver.subscribe(lambda _signal: on_hint())

    async def _bars(self, needs: Needs, failures: dict[str, str]) -> Overview | None:
        """The overview: on each refresh where it is the screen, every ten seconds where it feeds the bars alone."""
        now = self._monotonic()
        fresh = self._overview_at is not None and now - self._overview_at < _OVERVIEW_EVERY
        if needs.tenant != self._overview_of:
            self._overview, self._overview_of, fresh = None, needs.tenant, False
        if needs.overview or not fresh:
            overview = await _part("overview", failures, lambda: self._inspector.overview(tenant=needs.tenant))
            if overview is not None:
                self._overview, self._overview_at = overview, now
        return self._overview

    async def _queues(self, tenant: str | None) -> list[QueueRow]:
        if tenant is None:
            return await self._inspector.queues()
        return (await self._inspector.stats(tenant=tenant)).queues

    async def _watch(self, id: UUID, shown: JobDetail | None) -> JobDetail | None:
        if shown is not None and shown.row.id == id:
            return shown
        return await _part("watch", {}, lambda: self._inspector.job(id))

    async def _now(self, overview: Overview | None, page_as_of: datetime | None) -> datetime:
        if page_as_of is not None:
            return page_as_of
        return overview.as_of if overview is not None else await self._inspector.now()


def title_of(url: str) -> str:
    """Host and database of an address, or its folder; an address that cannot be taken apart as it is."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "")
        port = f":{parts.port}" if parts.port not in {None, 5432} else ""
    except ValueError:
        return url
    if parts.scheme == "embedded":
        return url.partition(":")[2] or url
    where = f"{host.rstrip('/').removesuffix('/run').rsplit('/', 1)[-1]}{port}"
    return f"{where}/{parts.path.lstrip('/')}".strip("/") or url


async def _part(name: str, failures: dict[str, str], read: Callable[[], Awaitable[_T]]) -> _T | None:
    """One read; its own failure is noted, a lost connection is everybody's."""
    try:
        return await read()
    except OSError:
        raise
    except DriverUnavailable as error:
        if type(error.__cause__).__name__ not in _SLOW:
            raise
        failures[name] = str(error.__cause__)
    except UltijobsError as error:
        failures[name] = explain(error)
    except Exception as error:
        if "Connection" in type(error).__name__ or "Interface" in type(error).__name__:
            raise
        failures[name] = explain(error)
    return None
