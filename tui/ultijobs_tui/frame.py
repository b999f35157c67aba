"""What a screen asks for in one refresh, and what came back. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from ultijobs.inspection import (
    ActivityRow,
    BackfillRow,
    Cause,
    Field,
    Health,
    JobDetail,
    JobPage,
    JobRow,
    Leader,
    LeaseRow,
    OutboxDepth,
    OutboxPage,
    OutboxState,
    Overview,
    QueueRow,
    Slot,
    Sort,
    Tally,
    TaskRow,
    Why,
    WorkerRow,
)

__all__ = ["ActivityAsk", "Frame", "Needs", "OutboxAsk", "PageAsk", "TallyAsk"]


@dataclass(frozen=True, slots=True)
class PageAsk:
    """One keyset page of jobs; `where` is the filter as written."""

    where: str
    sort: Sort = Sort.NEWEST
    after: str | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class TallyAsk:
    """Jobs of a filter, counted by one of their values."""

    where: str
    by: Field


@dataclass(frozen=True, slots=True)
class ActivityAsk:
    """One page of what operators did; `after` is the id of the last row of the page before."""

    after: UUID | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class OutboxAsk:
    """One page of staged rows, of one state or of all."""

    state: OutboxState | None = None
    after: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Needs:
    """What the visible screen shows, and nothing more. The overview comes along now and then for the bars."""

    overview: bool = False
    queues: bool = False
    causes: str | None = None
    tally: TallyAsk | None = None
    page: PageAsk | None = None
    job: UUID | None = None
    why: UUID | None = None
    leases: bool = False
    workers: bool = False
    leader: bool = False
    activity: ActivityAsk | None = None
    tasks: bool = False
    slots: str | None = None
    """The task whose ledger is shown."""
    outbox: OutboxAsk | None = None
    backfills: bool = False
    health: bool = False
    watch: UUID | None = None
    """A canary that is followed."""
    tenant: str | None = None
    """The tenant that all of it is narrowed to."""

    def following(self, id: UUID) -> Needs:
        return replace(self, watch=id)

    def within(self, tenant: str | None) -> Needs:
        return replace(self, tenant=tenant)

    def screen(self) -> Needs:
        """What the screen itself asked for, without what the cockpit added."""
        return replace(self, watch=None, tenant=None)


@dataclass(frozen=True, slots=True)
class Frame:
    """The answer to `needs`. What failed alone is in `failures`, by the name of the part; the rest holds."""

    needs: Needs
    as_of: datetime
    """The database's clock."""
    took_ms: float = 0.0
    overview: Overview | None = None
    queues: list[QueueRow] | None = None
    causes: list[Cause] | None = None
    tally: list[Tally] | None = None
    page: JobPage | None = None
    job: JobDetail | None = None
    why: Why | None = None
    leases: list[LeaseRow] | None = None
    workers: list[WorkerRow] | None = None
    leader: Leader | None = None
    """Who leads the schedule; also None when nobody ever did."""
    activity: list[ActivityRow] | None = None
    tasks: list[TaskRow] | None = None
    slots: list[Slot] | None = None
    outbox: OutboxPage | None = None
    depth: OutboxDepth | None = None
    backfills: list[BackfillRow] | None = None
    health: Health | None = None
    watch: JobRow | None = None
    failures: Mapping[str, str] = field(default_factory=dict[str, str])

    def filled(self, before: Frame | None) -> Frame:
        """With what failed this time as it was in `before`, when that answered the same."""
        if before is None or not self.failures or not before.answers(self.needs):
            return self
        if before.needs.tenant != self.needs.tenant:
            return self
        return replace(
            self,
            queues=before.queues if self.queues is None else self.queues,
            causes=before.causes if self.causes is None else self.causes,
            tally=before.tally if self.tally is None else self.tally,
            page=before.page if self.page is None else self.page,
            job=before.job if self.job is None else self.job,
            leases=before.leases if self.leases is None else self.leases,
            workers=before.workers if self.workers is None else self.workers,
            leader=before.leader if "leader" in self.failures else self.leader,
            activity=before.activity if self.activity is None else self.activity,
            tasks=before.tasks if self.tasks is None else self.tasks,
            slots=before.slots if self.slots is None else self.slots,
            outbox=before.outbox if self.outbox is None else self.outbox,
            depth=before.depth if self.depth is None else self.depth,
            backfills=before.backfills if self.backfills is None else self.backfills,
            health=before.health if self.health is None else self.health,
        )

    def answers(self, needs: Needs) -> bool:
        """Whether it was fetched for `needs`, whatever the cockpit added to them."""
        return self.needs.screen() == needs.screen()
