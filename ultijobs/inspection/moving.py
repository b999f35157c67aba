"""Moves jobs to another database, batch by batch, so that none is lost and none can run in both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from ultijobs._connect import driver_for
from ultijobs._queue.driver import Driver
from ultijobs._queue.moving import MovedJob
from ultijobs._queue.records import ActResult
from ultijobs._queue.views import JobRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.errors import FilterInvalid, Invariant, JobNotMovable, MoveRefused, SchemaOutdated
from ultijobs.inspection.models import Plan, PlanOptions, Refusal

__all__ = ["LISTED", "Move", "opened", "queues_of", "staying", "whither"]

LISTED: Final = 200
_EVENTS: Final = 500
_EARLIER: Final = timedelta(hours=1)
"""Ids are made by clients, whose clocks may differ from the database's by this much."""
_FIXED: Final = (
    "run_id",
    "name",
    "queue",
    "tenant_id",
    "idempotency_key",
    "input",
    "traceparent",
    "enqueued_by",
    "created_at",
)
"""What never changes about a job, whatever happens to it once it has arrived."""


def whither(options: PlanOptions) -> str:
    """Where the jobs go, without a password. Raises `Invariant` when no address is given or it cannot be one."""
    return _driver(options).url


def _driver(options: PlanOptions) -> Driver:
    if options.to is None:
        raise Invariant("no target is named", fix="give the address of the other database: to=, --to URL")
    return driver_for(options.to, options.to_schema)


@asynccontextmanager
async def opened(here: Driver, options: PlanOptions) -> AsyncGenerator[Driver]:
    """The target, open. Raises `MoveRefused` for one that is not durable, or is where the jobs are already.

    A target whose tables do not fit is `SchemaOutdated`, by its address.
    """
    there = _driver(options)
    try:
        await there.open("cli")
    except SchemaOutdated as unfit:
        raise _elsewhere(unfit, there.url) from unfit
    try:
        place = await there.moves.place()
        if not place.durable:
            raise MoveRefused(f"{there.url} ends with this process, and with it everything that was moved there")
        if place == await here.moves.place():
            raise MoveRefused(f"{there.url}, schema {options.to_schema}, is where the jobs are already")
        yield there
    finally:
        await there.close()


def _elsewhere(unfit: SchemaOutdated, url: str) -> SchemaOutdated:
    """The same of the target: by itself the error is read as one of the place that the settings name."""
    migrate = "ultijobs migrate"
    flags = unfit.fix.removeprefix(migrate)
    fix = unfit.fix if flags == unfit.fix else f"{migrate} --database-url {url}{flags}"
    return SchemaOutdated(f"{url}: {unfit.cause}", fix=fix, meta=unfit.meta)


def queues_of(where: Where) -> tuple[str, ...]:
    """The queues that a filter names. They are paused, so they have to be named whole: raises `FilterInvalid`."""
    named = where.values(Field.QUEUE)
    if not named or any(name.endswith("*") for name in named):
        raise FilterInvalid(
            "a queue is paused while it is drained, and the filter names none whole",
            fix="add queue:NAME to the filter, or give --queue NAME",
            meta={"position": 0},
        )
    return named


async def staying(here: Driver, where: Where, as_of: datetime, *, besides: Collection[UUID] = ()) -> list[Refusal]:
    """Live jobs of the same filter that are still there: those that run, and those that came later."""
    terms = [term for term in where.terms if term.field is not Field.STATE or term.negated]
    others = tuple(state for state in dict.fromkeys(where.states() or ()) if state != "running")
    told: list[Refusal] = []
    for states in (("running",), others) if others else (("running",),):
        left = Where((Term(Field.STATE, Op.IS, states), *terms), where.tenant)
        page = await here.inspect.jobs(left, sort=Sort.OLDEST, limit=LISTED)
        rows = [row for row in page.rows if row.id not in besides]
        stay = [_stays(row, as_of) for row in rows if row.state == "running" or row.updated_at > as_of]
        told += stay
        if stay and len(stay) == len(rows) and page.next is not None:
            told.append(Refusal(None, JobNotMovable.code, f"more than these {len(stay)} jobs stay"))
    return told


def _stays(row: JobRow, as_of: datetime) -> Refusal:
    if row.state == "running":
        return Refusal(row.id, JobNotMovable.code, f"job {row.id} is running: it stays until it ends")
    cause = f"job {row.id} was touched after {as_of:%H:%M:%S} and is not part of this move"
    return Refusal(row.id, JobNotMovable.code, cause)


class Move:
    """One move under way. After a failure the same plan, made again, goes on where it stopped."""

    def __init__(self, here: Driver, there: Driver, plan: Plan, actor: str) -> None:
        assert plan.target.where is not None
        self._here = here
        self._there = there
        self._plan = plan
        self._actor = actor
        self._where = plan.target.where
        self._identity = ""
        self._backfills: frozenset[str] = frozenset()
        self._since: datetime | None = None
        self._met: set[UUID] = set()
        """Jobs that went, or were refused; one that came along with another is not looked at twice."""

    async def begin(self) -> None:
        """Pauses the queues, and takes the events over that the runs may wait for."""
        self._identity = (await self._there.moves.place()).identity
        reason = self._plan.options.reason or f"its jobs move to {self._there.url}"
        for queue in queues_of(self._where):
            await self._here.pause(queue, actor=self._actor, reason=reason, duration=None)
        self._backfills = frozenset(entry.name for entry in await self._here.inspect.catalog("backfill"))
        await self._take_events_over()

    async def batch(self, ids: Sequence[UUID]) -> list[ActResult]:
        """Held here, received there, found there again, ended here; each a transaction of its own.

        Raises what keeps a step from being known: the jobs then stay held, and the next move of them goes on.
        """
        wanted = [job for job in ids if job not in self._met]
        holding = await self._here.moves.hold(wanted, to=self._there.url, identity=self._identity)
        refused = [result for result in holding.refused if result.id not in self._met]
        refused += [_backfill(job) for job in holding.jobs if job.name in self._backfills]
        jobs = [job for job in holding.jobs if job.name not in self._backfills]
        refused += [result for result in await self._there.moves.receive(jobs) if not result.done]
        stays = {result.id for result in refused}
        await self._here.moves.let_go([job.id for job in holding.jobs if job.id in stays], identity=self._identity)
        gone = [job for job in jobs if job.id not in stays]
        _verify(gone, await self._there.moves.present([job.id for job in gone]))
        ended = await self._end(gone)
        self._met |= {result.id for result in (*refused, *ended)}
        return [*ended, *refused]

    async def _end(self, jobs: Sequence[MovedJob]) -> list[ActResult]:
        ids = [job.id for job in jobs]
        ended = await self._here.moves.depart(ids, to=self._there.url, identity=self._identity)
        astray = [result.id for result in ended if not result.done]
        if astray:
            # Somebody took them out of the move by hand: they may run here, so they must not run there.
            await self._there.cancel(astray, reason="it was taken out of its move")
        return ended

    async def end(self) -> list[Refusal]:
        """Takes later events over, has them delivered, and answers with what stays."""
        await self._take_events_over()
        await self._there.events.deliver()
        return await staying(self._here, self._where, self._plan.as_of, besides=self._met)

    async def _take_events_over(self) -> None:
        first = await self._here.inspect.targets(self._where, as_of=self._plan.as_of, limit=1)
        row = await self._here.inspect.job(first[0]) if first else None
        if row is not None:
            self._since = row.created_at - _EARLIER
        after: UUID | None = None
        while self._since is not None:
            events = await self._here.moves.events(since=self._since, after=after, limit=_EVENTS)
            await self._there.moves.receive_events(events)
            if len(events) < _EVENTS:
                return
            after = events[-1].id


def _verify(sent: Sequence[MovedJob], found: Mapping[UUID, MovedJob]) -> None:
    """Raises `MoveRefused` when something is not there as it was sent. A copy that has run since is only recognised."""
    for job in sent:
        copy = found.get(job.id)
        if copy is None:
            raise MoveRefused(f"job {job.id} was stored there and is not found there", fix="look at the target")
        wrong = [name for name in _FIXED if getattr(copy, name) != getattr(job, name)]
        if not wrong and copy.lease_no == job.lease_no and copy.state == job.state and copy.run_at == job.run_at:
            wrong = [name for name in ("steps", "attempts") if getattr(copy, name) != getattr(job, name)]
        if wrong:
            raise MoveRefused(f"job {job.id} is there with another {', '.join(wrong)}", fix="look at the target")


def _backfill(job: MovedJob) -> ActResult:
    cause = f"job {job.id} is a pass of the backfill {job.name}, whose ledger stays here"
    return ActResult(job.id, done=False, code=JobNotMovable.code, cause=cause)
