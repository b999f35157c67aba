"""Two drivers driven as one: the same calls at the same time, and every answer compared."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.contract.test_workers import beat
from tests.property.asked import (
    KEYS,
    LEASE,
    NAMES,
    QUEUES,
    STEPS,
    WORKERS,
    all_caps,
    allowances,
    filters,
    indexes,
    new_events,
    new_jobs,
    policies,
    scopes,
    seconds,
    settlement_of,
    step_of,
)
from tests.property.sides import Side, differences
from ultijobs._queue.claims import Allowance, Beat, ClaimAsk, ClaimedJob, CrashPolicy, Progress
from ultijobs._queue.events import Look, NewEvent
from ultijobs._queue.lanes import lane_of
from ultijobs._queue.records import NewJob, Outcome, RequeueAsk
from ultijobs._queue.steps import StepStatus
from ultijobs._queue.telling import WorkerOrder
from ultijobs._queue.views import SlotRow, Sort
from ultijobs._queue.where import ANY, Where

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Agreement(RuleBasedStateMachine):
    """`model` is the memory driver, `real` is Postgres."""

    run: Run
    model: Side
    real: Side

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[UUID] = []
        self.events = 0

    # -- both at once --------------------------------------------------------------------------------------
    def both(self, call: Callable[[Side], Awaitable[T]]) -> T:
        """The answer of both; fails where they differ."""

        async def one(side: Side) -> T:
            return await call(side)

        expected, found = self.run(one(self.model)), self.run(one(self.real))
        parted = list(differences(self.model.plain(expected), self.real.plain(found)))
        assert not parted, "\n".join(parted)
        return expected

    def pick(self, indexes: Sequence[int]) -> tuple[UUID, ...]:
        """Ids of the newest jobs, each once."""
        known = self.ids[-12:]
        return tuple(dict.fromkeys(known[-1 - index % len(known)] for index in indexes)) if known else ()

    def claim_at(self, index: int) -> int:
        return -1 - index % min(len(self.model.claims), 12)

    # -- rules ---------------------------------------------------------------------------------------------
    def jobs_of(self, given: list[dict[str, Any]]) -> list[NewJob]:
        made: list[NewJob] = []
        for one in given:
            number = len(self.ids) + 1
            # Scattered, so that the order of ids is not the order of inserts.
            job_id = UUID(int=(number * 0x9E3779B97F4A7C15) % (1 << 64) << 32 | number)
            capped, apart = one["lane"]
            lane = lane_of(one["name"], one["tenant_id"], capped=capped, by_tenant=apart)
            unique = KEYS[one["idempotency_key"]]
            made.append(NewJob(**{**one, "id": job_id, "input": "null", "unique": unique, "lane": lane}))
            self.ids.append(job_id)
        return made

    @initialize(given=st.lists(new_jobs, min_size=3, max_size=6))
    def begin(self, given: list[dict[str, Any]]) -> None:
        self.enqueue(given)

    @rule(given=st.lists(new_jobs, min_size=1, max_size=4))
    def enqueue(self, given: list[dict[str, Any]]) -> None:
        jobs = self.jobs_of(given)
        self.both(lambda side: side.driver.enqueue(jobs))

    @rule(given=st.lists(new_jobs, min_size=1, max_size=2), commits=st.booleans())
    def enqueue_in_a_transaction(self, given: list[dict[str, Any]], commits: bool) -> None:
        jobs = self.jobs_of(given)

        async def inside(side: Side) -> object:
            answers: object = None
            with contextlib.suppress(_RollBack):
                async with side.driver.transaction() as tx:
                    answers = await side.driver.enqueue(jobs, tx=tx)
                    if not commits:
                        raise _RollBack
            return answers

        self.both(inside)

    def take(self, ask: ClaimAsk) -> int:
        async def claimed(side: Side) -> list[ClaimedJob]:
            got = await side.driver.claim(ask)
            side.learn(got)
            return got

        return len(self.both(claimed))

    @rule(
        slots=st.dictionaries(st.sampled_from(QUEUES), st.integers(0, 3), min_size=1),
        names=st.sampled_from([NAMES, NAMES[:1], NAMES[1:]]),
        limit=st.integers(1, 5),
        skip=st.lists(indexes, max_size=1),
        caps=all_caps,
    )
    def claim(
        self, slots: dict[str, int], names: tuple[str, ...], limit: int, skip: list[int], caps: dict[str, int]
    ) -> None:
        known = {name: cap for name, cap in caps.items() if name in names}
        self.take(ClaimAsk("w-1", slots, names, limit, LEASE, frozenset(self.pick(skip)), known))

    @rule(limit=st.integers(1, 6), caps=all_caps, tenants=allowances)
    def claim_anything(self, limit: int, caps: dict[str, int], tenants: Allowance | None) -> None:
        queues = dict.fromkeys(QUEUES, limit)
        self.take(ClaimAsk("w-2", queues, NAMES, limit, LEASE, caps=caps, tenants=tenants))

    @rule(
        queues=st.sampled_from([QUEUES, QUEUES[:1]]),
        names=st.sampled_from([NAMES, NAMES[:1]]),
        caps=all_caps,
        apart=st.sampled_from([QUEUES, QUEUES[:1], ()]),
    )
    def file(
        self, queues: tuple[str, ...], names: tuple[str, ...], caps: dict[str, int], apart: tuple[str, ...]
    ) -> None:
        known = {name: cap for name, cap in caps.items() if name in names}
        self.both(lambda side: side.driver.file(queues, names, known, apart))

    @rule(outcomes=st.lists(st.tuples(st.sampled_from(list(Outcome)), seconds), min_size=1, max_size=3))
    def claim_and_settle(self, outcomes: list[tuple[Outcome, timedelta]]) -> None:
        """What a worker does most of the time."""
        limit = len(outcomes)
        got = self.take(ClaimAsk("w-2", dict.fromkeys(QUEUES, limit), NAMES, limit, LEASE))
        if got:
            self.end({place - got: outcome for place, outcome in enumerate(outcomes[:got])})

    def end(self, at: Mapping[int, tuple[Outcome, timedelta]]) -> None:
        self.both(
            lambda side: side.driver.settle(
                [settlement_of(side.claims[place], outcome, delay) for place, (outcome, delay) in at.items()]
            )
        )

    @precondition(lambda self: self.model.claims)
    @rule(
        chosen=st.lists(st.tuples(indexes, st.sampled_from(list(Outcome)), seconds), min_size=1, max_size=3),
    )
    def settle(self, chosen: list[tuple[int, Outcome, timedelta]]) -> None:
        self.end({self.claim_at(index): (outcome, delay) for index, outcome, delay in chosen})

    @precondition(lambda self: self.model.claims)
    @rule(
        chosen=st.lists(indexes, min_size=1, max_size=3, unique=True),
        step=st.none() | st.sampled_from(STEPS),
        done=st.none() | st.integers(0, 9),
        code=st.none() | st.just("X_JOB_TIMEOUT"),
    )
    def renew(self, chosen: list[int], step: str | None, done: int | None, code: str | None) -> None:
        progress = None if done is None else Progress(done)
        at = dict.fromkeys(map(self.claim_at, chosen))

        async def renewed(side: Side) -> object:
            link = side.driver.lease_link()
            await link.open()
            try:
                beats = [Beat(c.id, c.lease_no, step, progress, code) for c in (side.claims[place] for place in at)]
                return await link.renew(beats, LEASE)
            finally:
                await link.close()

        self.both(renewed)

    @precondition(lambda self: self.model.claims)
    @rule(
        chosen=st.lists(
            st.tuples(indexes, st.sampled_from(STEPS), st.sampled_from(list(StepStatus)), seconds),
            min_size=1,
            max_size=3,
        )
    )
    def record(self, chosen: list[tuple[int, str, StepStatus, timedelta]]) -> None:
        self.both(
            lambda side: side.driver.record_steps(
                [step_of(side.claims[self.claim_at(index)], name, status, took) for index, name, status, took in chosen]
            )
        )

    @rule(given=st.lists(new_events, min_size=1, max_size=2), inside=st.booleans(), commits=st.booleans())
    def publish(self, given: list[dict[str, Any]], inside: bool, commits: bool) -> None:
        events = [NewEvent(id=UUID(int=(1 << 100) + self.events + at), **one) for at, one in enumerate(given)]
        self.events += len(events)
        if not inside:
            self.both(lambda side: side.driver.events.publish(events))
            return

        async def published(side: Side) -> None:
            with contextlib.suppress(_RollBack):
                async with side.driver.transaction() as tx:
                    assert await side.driver.events.publish(events, tx=tx) == 0
                    if not commits:
                        raise _RollBack
            # Who makes the waiting runs due, the commit or this call, is each driver's own affair.
            await side.driver.events.deliver()

        self.both(published)

    @precondition(lambda self: self.model.claims)
    @rule(
        chosen=st.lists(indexes, min_size=1, max_size=2, unique=True),
        step=st.sampled_from(STEPS),
        since_run=st.booleans(),
        required=st.booleans(),
        again=st.none() | seconds.filter(bool),
    )
    def look_for_events(
        self, chosen: list[int], step: str, since_run: bool, required: bool, again: timedelta | None
    ) -> None:
        at = dict.fromkeys(map(self.claim_at, chosen))
        self.both(
            lambda side: side.driver.events.look(
                [
                    Look(c.id, c.run_id, c.lease_no, step, since_run, required, again)
                    for c in (side.claims[place] for place in at)
                ]
            )
        )

    @rule(step=st.sampled_from(STEPS), wait=seconds.filter(bool), event=st.none() | new_events, parks=st.booleans())
    def wait_for_an_event(self, step: str, wait: timedelta, event: dict[str, Any] | None, parks: bool) -> None:
        """A run begins to wait; an event may come before it has gone to sleep."""
        if not self.take(ClaimAsk("w-2", dict.fromkeys(QUEUES, 1), NAMES, 1, LEASE)):
            return
        self.record([(0, step, StepStatus.WAITING, wait)])
        if event is not None:
            self.publish([event], inside=False, commits=True)
        self.look_for_events([0], step, since_run=True, required=False, again=None)
        if parks:
            self.end({-1: (Outcome.SUSPENDED, wait)})

    @rule(given=st.lists(policies, max_size=1))
    def reap(self, given: list[CrashPolicy]) -> None:
        async def reaped(side: Side) -> object:
            return sorted(await side.driver.reap(given, limit=1_000), key=lambda one: one.id)

        self.both(reaped)

    @rule(given=st.lists(policies, max_size=1))
    def vanish(self, given: list[CrashPolicy]) -> None:
        """Every worker is gone, and what it held is taken back."""
        self.advance(31)
        self.reap(given)

    @rule(by=st.sampled_from([1, 5, 31, 70]))
    def advance(self, by: int) -> None:
        self.both(lambda side: side.harness.advance(timedelta(seconds=by)))

    @precondition(lambda self: self.ids)
    @rule(chosen=st.lists(indexes, min_size=1, max_size=3), tenant=scopes, reason=st.none() | st.just("no"))
    def cancel(self, chosen: list[int], tenant: str | None, reason: str | None) -> None:
        ids = self.pick(chosen)
        self.both(lambda side: side.driver.cancel(ids, reason=reason, tenant=tenant))

    @precondition(lambda self: self.ids)
    @rule(
        chosen=st.lists(indexes, min_size=1, max_size=4),
        tenant=scopes,
        allow_done=st.booleans(),
        step=st.none() | st.sampled_from(STEPS),
        only=st.booleans(),
    )
    def requeue(self, chosen: list[int], tenant: str | None, allow_done: bool, step: str | None, only: bool) -> None:
        named = {"only_step" if only else "from_step": step}
        ask = RequeueAsk(self.pick(chosen), allow_done=allow_done, tenant=tenant, **named)
        self.both(lambda side: side.driver.requeue(ask))

    @rule(queue=st.sampled_from(QUEUES), duration=st.none() | seconds.filter(bool), closes=st.booleans())
    def gate(self, queue: str, duration: timedelta | None, closes: bool) -> None:
        if closes:
            self.both(lambda side: side.driver.pause(queue, actor="alice", reason=None, duration=duration))
        else:
            self.both(lambda side: side.driver.resume(queue))

    @rule(
        instance=st.sampled_from(WORKERS),
        queues=st.sampled_from([QUEUES, QUEUES[:1]]),
        state=st.sampled_from(["running", "draining", "stopped"]),
        free=st.integers(0, 2),
        order=st.none() | st.sampled_from(list(WorkerOrder)),
    )
    def fleet(self, instance: UUID, queues: tuple[str, ...], state: str, free: int, order: WorkerOrder | None) -> None:
        name = f"w-{instance.int}"
        told = beat(name, instance, queues=queues, state=state, free_slots=free, running=2 - free)
        self.both(lambda side: side.driver.beat(told))
        if order is not None:
            self.both(lambda side: side.driver.order_worker(name, order))

    @rule(where=filters, sort=st.sampled_from(list(Sort)), limit=st.integers(1, 4), cap=st.sampled_from([1, 3, 1_000]))
    def look(self, where: Where, sort: Sort, limit: int, cap: int) -> None:
        async def seen(side: Side) -> object:
            reads = side.driver.inspect
            as_of = await reads.now() - timedelta(seconds=cap)
            return (
                await _pages(side, where, sort, limit),
                await reads.count(where, cap=cap),
                await reads.targets(where, as_of=as_of),
                sorted(map(_cause, await reads.causes(where)), key=repr),
            )

        self.both(seen)

    @rule(queue=st.none() | st.sampled_from(QUEUES), tenant=scopes)
    def narrow(self, queue: str | None, tenant: str | None) -> None:
        self.both(lambda side: side.driver.inspect.stats(queue, tenant))

    # -- what holds after every step -----------------------------------------------------------------------
    @invariant()
    def every_row_is_the_same(self) -> None:
        async def everything(side: Side) -> object:
            reads = side.driver.inspect
            page = await reads.jobs(ANY, sort=Sort.OLDEST, limit=500)
            runs = [row.run_id for row in page.rows]
            return (
                page,
                {run: found for run, found in (await side.driver.load_steps(runs)).items() if found},
                [attempt for run in self.ids[-12:] for attempt in await reads.attempts(run)],
                await reads.stats(),
                await reads.leases(),
                [_holders(await reads.slots(name)) for name in NAMES],
                await reads.workers(),
                await reads.due(queues=QUEUES, without=NAMES[:1], tenants=["acme"]),
                await side.driver.events.page(),
            )

        self.both(everything)

    @invariant()
    def no_wait_is_too_long(self) -> None:
        """`next_due` may be early and never late."""
        for held in ({}, {"caps": NAMES[:1], "tenants": Allowance(1, {"acme": 0})}):
            expected = self.run(self.model.driver.next_due(QUEUES, NAMES, **held))
            found = self.run(self.real.driver.next_due(QUEUES, NAMES, **held))
            if expected is not None:
                assert found is not None
                assert found <= expected


class _RollBack(Exception):
    pass


def _holders(slots: Sequence[SlotRow]) -> Any:
    """Which of them has which slot is a driver's own affair."""
    return sorted(slot.slot for slot in slots), sorted(slot.job_id for slot in slots)


def _cause(cause: Any) -> Any:
    """Without what ties decide: several jobs that stopped at one moment."""
    return replace(cause, sample=len(cause.sample), error=None, error_code=None, step=None)


async def _pages(side: Side, where: Where, sort: Sort, limit: int) -> list[UUID]:
    rows: list[UUID] = []
    after: str | None = None
    while True:
        page = await side.driver.inspect.jobs(where, sort=sort, after=after, limit=limit)
        rows += [row.id for row in page.rows]
        after = page.next
        if after is None:
            return rows
