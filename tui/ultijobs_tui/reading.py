"""Reads what a screen needs, one question at a time: a part that fails alone is told, a lost connection is raised."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from ultijobs.errors import DriverUnavailable, UltijobsError
from ultijobs.inspection import (
    ActivityRow,
    Field,
    Inspector,
    JobPage,
    JobRow,
    LeaseRow,
    Op,
    OutboxPage,
    Overview,
    QueueRow,
    Term,
    Where,
    parse_where,
)
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import ActivityAsk, Frame, Needs, OutboxAsk, PageAsk
from ultijobs_tui.link import explain

__all__ = ["Reader"]

_T = TypeVar("_T")
_A = TypeVar("_A")
_OVERVIEW_EVERY: Final = 10.0
_SLOTS: Final = 50
_SLOW: Final = frozenset({"QueryCanceledError", "LockNotAvailableError"})
"""One statement ran into its limit; the connection is as good as before."""


class Reader:
    """Makes frames. The overview is read with each where it is the screen, else every ten seconds for the bars.

    A refresh is six statements at the most, so where the bars are not the screen they have a turn of their own: the
    screen is then shown as it was the turn before.
    """

    def __init__(self, inspector: Inspector, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._inspector = inspector
        self._monotonic = monotonic
        self._overview: Overview | None = None
        self._overview_at: float | None = None
        self._overview_of: str | None = None
        self._last: Frame | None = None
        """The screen's own last turn; None when the bars had one since."""

    def stale(self) -> None:
        """Something was changed by hand: the bars are read anew with the next refresh."""
        self._overview_at = None

    async def read(self, needs: Needs) -> Frame:
        """Raises when the connection is lost."""
        began = self._monotonic()
        parts = _Parts()
        due = self._due(needs)
        if due and not needs.overview and self._last is not None and self._last.needs == needs:
            overview = await self._bars(needs, parts)
            frame = replace(self._last, overview=overview, failures=parts.failures)
            self._last = None
            now = await self._inspector.now() if overview is None else overview.as_of
            return replace(frame, as_of=now, took_ms=(self._monotonic() - began) * 1000)
        overview = await self._bars(needs, parts) if needs.overview else self._overview
        frame = await self._frame(needs, parts, overview)
        if needs.watch is not None:
            shown = frame.job.row if frame.job is not None and frame.job.row.id == needs.watch else None
            frame = replace(frame, watch=shown or await _Parts().asked("watch", needs.watch, self._row))
        now = await self._now(frame)
        frame = replace(frame, as_of=now, took_ms=(self._monotonic() - began) * 1000, failures=parts.failures)
        self._last = None if parts.failures else frame
        return frame

    async def _frame(self, needs: Needs, parts: _Parts, overview: Overview | None) -> Frame:
        inspector, asked, wanted, tenant = self._inspector, parts.asked, parts.wanted, needs.tenant
        return Frame(
            needs=needs,
            as_of=fmt.EPOCH,
            overview=overview,
            queues=await wanted("queues", needs.queues, lambda: self._queues(tenant)),
            causes=await asked(
                "causes", needs.causes, lambda where: inspector.causes(parse_where(where, tenant=tenant))
            ),
            tally=await asked(
                "tally", needs.tally, lambda ask: inspector.tally(parse_where(ask.where, tenant=tenant), by=ask.by)
            ),
            page=await asked("jobs", needs.page, lambda ask: self._page(ask, tenant)),
            job=await asked("job", needs.job, lambda job: inspector.job(job, tenant=tenant)),
            why=await asked("why", needs.why, lambda job: inspector.why(job, tenant=tenant)),
            leases=await wanted("leases", needs.leases, lambda: self._leases(tenant)),
            workers=await wanted("workers", needs.workers, inspector.workers),
            leader=await wanted("leader", needs.leader, inspector.leader),
            activity=await asked("activity", needs.activity, self._activity),
            tasks=await wanted("tasks", needs.tasks, inspector.tasks),
            slots=await asked("slots", needs.slots, lambda task: inspector.slots(task, limit=_SLOTS)),
            outbox=await asked("outbox", needs.outbox, lambda ask: self._outbox(ask, tenant)),
            depth=await wanted("backlog", needs.outbox is not None, inspector.outbox_depth),
            backfills=await wanted("backfills", needs.backfills, inspector.backfills),
            health=await wanted("health", needs.health, inspector.health),
        )

    def _due(self, needs: Needs) -> bool:
        if needs.tenant != self._overview_of:
            self._overview, self._overview_of, self._overview_at = None, needs.tenant, None
        return self._overview_at is None or self._monotonic() - self._overview_at >= _OVERVIEW_EVERY

    async def _bars(self, needs: Needs, parts: _Parts) -> Overview | None:
        read = lambda: self._inspector.overview(tenant=needs.tenant)  # noqa: E731 - a name for a question
        overview = await parts.wanted("overview", True, read)
        if overview is not None:
            self._overview, self._overview_at = overview, self._monotonic()
        return self._overview

    async def _queues(self, tenant: str | None) -> list[QueueRow]:
        if tenant is None:
            return await self._inspector.queues()
        return (await self._inspector.stats(tenant=tenant)).queues

    async def _leases(self, tenant: str | None) -> list[LeaseRow]:
        return await self._inspector.leases(Where((), tenant))

    async def _page(self, ask: PageAsk, tenant: str | None) -> JobPage:
        where = parse_where(ask.where, tenant=tenant)
        return await self._inspector.jobs(where, sort=ask.sort, after=ask.after, limit=ask.limit)

    async def _row(self, job: UUID) -> JobRow | None:
        """One statement; a job whole would be five."""
        page = await self._inspector.jobs(Where((Term(Field.ID, Op.IS, (job.hex,)),)), limit=1)
        return page.rows[0] if page.rows else None

    async def _activity(self, ask: ActivityAsk) -> list[ActivityRow]:
        return await self._inspector.activity(after=ask.after, limit=ask.limit)

    async def _outbox(self, ask: OutboxAsk, tenant: str | None) -> OutboxPage:
        states = [ask.state] if ask.state else ()
        return await self._inspector.outbox(states, tenant=tenant, after=ask.after, limit=ask.limit)

    async def _now(self, frame: Frame) -> datetime:
        """The database's clock as a part that was read tells it; asked for when none does."""
        overview = frame.overview if frame.needs.overview else None
        for part in (frame.page, overview, frame.health):
            if part is not None:
                return part.as_of
        if frame.leader is not None:
            return frame.leader.now
        return await self._inspector.now()


class _Parts:
    """Reads parts; `failures` holds those that failed alone, by name."""

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}

    async def wanted(self, name: str, want: bool, read: Callable[[], Awaitable[_T]]) -> _T | None:
        return await self._read(name, read) if want else None

    async def asked(self, name: str, ask: _A | None, read: Callable[[_A], Awaitable[_T]]) -> _T | None:
        return None if ask is None else await self._read(name, lambda: read(ask))

    async def _read(self, name: str, read: Callable[[], Awaitable[_T]]) -> _T | None:
        try:
            return await read()
        except OSError:
            raise
        except DriverUnavailable as error:
            if type(error.__cause__).__name__ not in _SLOW:
                raise
            self.failures[name] = f"{error.__cause__} · Database shows what holds it up"
        except UltijobsError as error:
            self.failures[name] = explain(error)
        except Exception as error:
            if "Connection" in type(error).__name__ or "Interface" in type(error).__name__:
                raise
            self.failures[name] = explain(error)
        return None
