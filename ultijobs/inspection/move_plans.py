"""What a move to another database would do, before it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from ultijobs._queue.driver import Driver
from ultijobs._queue.views import Count, QueueRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.inspection.commands import equivalent, instant
from ultijobs.inspection.models import Action, Plan, PlanOptions, Target
from ultijobs.inspection.moving import LISTED, opened, queues_of, staying, whither

__all__ = ["MOVED_STATES", "move_plan"]

MOVED_STATES: Final = ("ready", "delayed", "suspended")
"""What goes unless a filter names states: what is still to run and does not run now."""
_CAP: Final = 10_000
_SAMPLES: Final = 3


async def move_plan(driver: Driver, target: Target, options: PlanOptions, as_of: datetime) -> Plan:
    """The target is opened and asked too; nothing is changed. Raises `MoveRefused`, `FilterInvalid`."""
    where = target.where or Where(
        (Term(Field.STATE, Op.IS, MOVED_STATES), Term(Field.QUEUE, Op.IS, (target.queue or "",))), options.tenant
    )
    names = queues_of(where)
    async with opened(driver, options) as there:
        there_queues = await there.inspect.queues()
    store = driver.inspect
    ids = await store.targets(where, as_of=as_of, limit=min(LISTED, options.limit or LISTED))
    matched = Count(len(ids)) if len(ids) < LISTED else await store.count(where, cap=_CAP)
    if options.limit is not None and matched.value > options.limit:
        matched = Count(options.limit)
    of_ids = Where((Term(Field.ID, Op.IS, tuple(job.hex for job in ids)),))
    rows = (await store.jobs(of_ids, sort=Sort.OLDEST, limit=LISTED)).rows if ids else []
    return Plan(
        action=Action.DRAIN_QUEUE,
        target=replace(target, where=where),
        options=options,
        as_of=as_of,
        matched=matched,
        queues=Counter(row.queue for row in rows),
        tenants=len({row.tenant_id for row in rows if row.tenant_id is not None}),
        samples=tuple(ids[:_SAMPLES]),
        refused=tuple(await staying(driver, where, as_of)),
        reruns=(),
        replays=(),
        warnings=tuple(_warnings(names, _by_name(await store.queues()), _by_name(there_queues))),
        equivalent=equivalent(Action.DRAIN_QUEUE, target, replace(options, to=whither(options)), as_of),
    )


def _by_name(queues: Sequence[QueueRow]) -> Mapping[str, QueueRow]:
    return {queue.queue: queue for queue in queues}


def _warnings(names: Sequence[str], here: Mapping[str, QueueRow], there: Mapping[str, QueueRow]) -> Iterator[str]:
    for name in names:
        queue = here.get(name)
        if queue is None or queue.state != "paused":
            yield f"queue {name} is paused by this, and stays paused"
        elif queue.resume_at is not None:
            yield f"queue {name} resumes by itself at {instant(queue.resume_at)}"
        if queue is not None and queue.dead.value:
            yield f"{queue.dead} dead of queue {name} stay: a filter with state:dead moves them"
        target = there.get(name)
        if target is not None and target.state == "paused":
            yield f"queue {name} is paused there too: they wait until it is resumed there"
        elif target is None or not target.workers:
            yield f"no worker serves queue {name} there yet"
