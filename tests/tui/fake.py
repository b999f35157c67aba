"""A source without a database: answers from what it holds, remembers what it was asked, fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from uuid import UUID

from tests.tui import data
from ultijobs.errors import JobUnknown
from ultijobs.inspection import (
    Action,
    ActivityRow,
    ActOutcome,
    BackfillRow,
    Cause,
    Count,
    Field,
    Health,
    JobDetail,
    JobPage,
    Leader,
    LeaseRow,
    OutboxDepth,
    OutboxPage,
    Overview,
    Plan,
    PlanOptions,
    QueueRow,
    Refusal,
    Slot,
    Tally,
    Target,
    TaskDetail,
    TaskRow,
    Unheard,
    Where,
    Why,
    WorkerRow,
    equivalent,
    parse_where,
)
from ultijobs_tui.frame import Frame, Needs

INVERSE = {
    Action.PAUSE: Action.RESUME,
    Action.RESUME: Action.PAUSE,
    Action.DRAIN_WORKER: Action.RESUME_WORKER,
    Action.RESUME_WORKER: Action.DRAIN_WORKER,
}


@dataclass
class FakeSource:
    overview: Overview | None = field(default_factory=data.overview)
    queues: list[QueueRow] = field(default_factory=data.queues)
    tally: list[Tally] = field(default_factory=data.tally)
    causes: list[Cause] = field(default_factory=data.causes)
    page: JobPage = field(default_factory=data.page)
    dead_page: JobPage = field(default_factory=data.dead_page)
    details: dict[UUID, JobDetail] = field(default_factory=lambda: {data.uid(1): data.detail()})
    reason: Why = field(default_factory=data.why)
    leases: list[LeaseRow] = field(default_factory=data.leases)
    workers: list[WorkerRow] = field(default_factory=data.workers)
    leader: Leader | None = field(default_factory=data.leader)
    activity: list[ActivityRow] = field(default_factory=data.activity)
    tasks: list[TaskRow] = field(default_factory=data.tasks)
    slots: Callable[[str], list[Slot]] = data.slots
    outbox: OutboxPage = field(default_factory=data.outbox)
    depth: OutboxDepth = field(default_factory=data.depth)
    health: Health = field(default_factory=data.health)
    backfills: list[BackfillRow] = field(default_factory=data.backfills)
    runs_tasks: bool = False
    failures: dict[str, str] = field(default_factory=dict)
    live: bool = False
    title: str = "db-eu-1:5432/shop"
    actor: str = "ops@bastion"
    error: BaseException | None = None
    hangs: bool = False
    apply_hangs: bool = False
    refused: tuple[Refusal, ...] = ()
    tenants: tuple[str, ...] = ("t17", "t42")
    stays: tuple[Refusal, ...] = ()
    """What an undo refuses."""
    matched: Count | None = None
    fetched: list[Needs] = field(default_factory=list)
    planned: list[tuple[Action, Target, PlanOptions]] = field(default_factory=list)
    applied: list[Plan] = field(default_factory=list)
    hint: Callable[[], None] = lambda: None
    as_of: datetime = data.NOW

    def frame(self, needs: Needs) -> Frame:
        failures = dict(self.failures)
        job = None
        if needs.job is not None:
            job = self.details.get(needs.job)
            if job is None:
                failures["job"] = f"X_JOB_UNKNOWN: there is no job {needs.job}"
        page = None
        if needs.page is not None and "jobs" not in failures:
            page = self.dead_page if "fp:" in needs.page.where or needs.tally is not None else self.page
        return Frame(
            needs=needs,
            as_of=self.as_of,
            took_ms=18.0,
            overview=self.overview if "overview" not in failures else None,
            queues=self.queues if needs.queues else None,
            causes=self.causes if needs.causes is not None and "causes" not in failures else None,
            tally=self.tally if needs.tally is not None else None,
            page=page,
            job=job,
            why=self.reason if needs.why is not None else None,
            leases=self.leases if needs.leases and "leases" not in failures else None,
            workers=self.workers if needs.workers and "workers" not in failures else None,
            leader=self.leader if needs.leader else None,
            activity=self.activity if needs.activity is not None and "activity" not in failures else None,
            tasks=self.tasks if needs.tasks and "tasks" not in failures else None,
            slots=self.slots(needs.slots) if needs.slots is not None else None,
            outbox=self.outbox if needs.outbox is not None and "outbox" not in failures else None,
            depth=self.depth if needs.outbox is not None else None,
            backfills=self.backfills if needs.backfills and "backfills" not in failures else None,
            health=self.health if needs.health and "health" not in failures else None,
            watch=self.details[needs.watch].row if needs.watch in self.details else None,
            failures=failures,
        )

    async def fetch(self, needs: Needs) -> Frame:
        self.fetched.append(needs)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error
        return self.frame(needs)

    async def find(self, ref: str) -> UUID:
        for id_ in self.details:
            if id_.hex.endswith(ref) or str(id_) == ref:
                return id_
        raise JobUnknown(f"there is no job {ref!r}")

    async def unheard(self, where: Where) -> list[Unheard]:
        if where.tenant is not None:
            return [] if where.tenant in self.tenants else [Unheard(Field.TENANT, where.tenant, self.tenants)]
        names = [row.queue for row in self.queues]
        asked = where.values(Field.QUEUE) or ()
        return [
            Unheard(Field.QUEUE, name, tuple(get_close_matches(name, names))) for name in asked if name not in names
        ]

    async def input(self, id: UUID) -> str | None:
        return '{"invoice": "inv_8001", "card": "•••", "amount": 4200}'

    async def task(self, name: str) -> TaskDetail:
        return data.task_detail()

    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan:
        if isinstance(target, str):
            target = Target(where=parse_where(target), text=target)
        elif not isinstance(target, Target):
            target = Target(ids=tuple(target))
        self.planned.append((action, target, options))
        one = target.queue or target.worker or target.task or target.backfill or target.act
        forecast = None if target.backfill is None else data.forecast(target.backfill, action)
        matched = self.matched or (Count(len(target.ids)) if target.ids else Count(1 if one else 3_902))
        if forecast is not None and forecast.refusals:
            matched = Count(0)
        if options.limit is not None:
            matched = Count(min(options.limit, matched.value))
        jobs = action in {Action.RETRY, Action.CANCEL}
        samples = target.ids[:3] or (tuple(data.uid(n) for n in range(1, min(4, matched.value + 1))) if jobs else ())
        return Plan(
            action=action,
            target=target,
            options=options,
            as_of=self.as_of,
            matched=matched,
            queues={"billing": matched.value} if jobs else {target.queue or "": 51_201},
            tenants=41 if jobs and matched.value > 1 else 0,
            samples=samples,
            refused=self.stays if action is Action.UNDO else self.refused,
            reruns=("charge",) if action is Action.RETRY else (),
            replays=("load", "reserve") if action is Action.RETRY else (),
            warnings=("queue billing is paused: they wait until it is resumed",) if action is Action.RETRY else (),
            equivalent=equivalent(action, target, options, self.as_of),
            inverse=INVERSE.get(action),
            forecast=forecast,
            ready=Count(51_201) if target.queue else None,
        )

    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome:
        self.applied.append(plan)
        while self.apply_hangs and not stop():
            on_progress(500, plan.matched.value)
            await asyncio.sleep(0.01)
        if plan.action is Action.UNDO:
            return ActOutcome(1, (data.uid(1),), (), (), data.uid(9_999), plan.as_of)
        named = plan.target.queue or plan.target.worker or plan.target.task or plan.target.backfill
        done = () if named else plan.target.ids or plan.samples
        matched, act = max(1, len(done)), data.uid(9_999)
        return ActOutcome(matched, tuple(done), plan.refused, (), act, plan.as_of, stopped=self.apply_hangs)

    @asynccontextmanager
    async def subscribe(self, on_hint: Callable[[], None]) -> AsyncGenerator[None]:
        self.hint = on_hint
        yield


def empty_source() -> FakeSource:
    return FakeSource(
        overview=data.calm(),
        queues=[],
        causes=[],
        page=JobPage([], None, data.NOW),
        dead_page=JobPage([], None, data.NOW),
        details={data.uid(1): replace(data.detail(), steps=[], attempts=[])},
        leases=[],
        workers=[],
        leader=None,
        activity=[],
        backfills=[],
        tasks=[],
        outbox=OutboxPage([], None),
        depth=OutboxDepth(Count(0), None, Count(0)),
        health=Health("memory", "0.1.0", 1, 0, 0, [], [], 0, 0, 0.0, data.NOW, lacks=("memory has no sessions",)),
    )
