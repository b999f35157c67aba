"""The four ways to enqueue, over one: rows are made where the caller is, and stored where the driver is open."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Protocol

from ultijobs import _settings
from ultijobs._definitions import checks
from ultijobs._definitions.bounds import Limits, Sizes
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.registry import Registry
from ultijobs._enqueue.opening import Opening
from ultijobs._enqueue.rows import Wishes, row, wishes
from ultijobs._enqueue.staging import Staging
from ultijobs._enqueue.transactions import joined, savepoint
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import Enqueued, NewJob
from ultijobs._tracing import produced, producing
from ultijobs._tx.kinds import SYNC, kind_of
from ultijobs.errors import Invariant, JobDuplicate, OutboxConflict

__all__ = ["Asker"]

# How many inputs are validated before other tasks of the loop get their turn.
_TURN: Final = 500


class Declarations(Protocol):
    @property
    def registry(self) -> Registry: ...
    @property
    def sizes(self) -> Sizes: ...
    @property
    def limits(self) -> Limits: ...


class Asker:
    """Enqueues for one application. Nothing is stored unless all of a call can be."""

    def __init__(self, application: Declarations, opening: Opening, outbox: Staging | None, *, required: bool) -> None:
        # Weak, since the application owns this: nothing but its users keeps it alive.
        self._application: Final = weakref.ref(application)
        self._registry: Final = application.registry
        self._limit: Final = application.sizes.input
        self._limits: Final = application.limits
        self._outbox: Final = outbox
        self._opening: Final = opening
        self._required: Final = required

    async def one(self, handle: JobHandle[Any], input: Any, options: Mapping[str, Any]) -> Enqueued:
        asked, tx = self._begin(handle, options, sync=False, call="enqueue")
        with producing("enqueue ", handle.name, handle.queue) as span:
            job = self._row(handle, input, asked)
            if tx is not None:
                answers = await self._opening.with_tx(lambda driver: self._joining(driver, [job], tx, asked))
            else:
                answers = [_judged(await self._opening.call(lambda _: self._opening.store(job)), job, asked)]
            return _told(span, answers)[0]

    async def many(self, handle: JobHandle[Any], inputs: Iterable[Any], options: Mapping[str, Any]) -> list[Enqueued]:
        asked, tx = self._begin(handle, options, sync=False, call="enqueue_many")
        with producing("enqueue ", handle.name, handle.queue) as span:
            jobs: list[NewJob] = []
            for each in checks.iterable(inputs, "enqueue_many: inputs"):
                jobs.append(self._row(handle, each, asked))
                if len(jobs) % _TURN == 0:
                    await asyncio.sleep(0)
            if tx is not None:
                answers = await self._opening.with_tx(lambda driver: self._joining(driver, jobs, tx, asked))
            else:
                answers = await self._opening.call(lambda driver: _own(driver, jobs, asked))
            return _told(span, answers)

    def many_sync(
        self, handle: JobHandle[Any], inputs: Iterable[Any], options: Mapping[str, Any], *, call: str
    ) -> list[Enqueued]:
        asked, tx = self._begin(handle, options, sync=True, call=call)
        with producing("enqueue ", handle.name, handle.queue) as span:
            jobs = [self._row(handle, each, asked) for each in checks.iterable(inputs, f"{call}: inputs")]
            return _told(span, self._stored_sync(jobs, asked, tx, call=call))

    def _stored_sync(self, jobs: list[NewJob], asked: Wishes, tx: object | None, *, call: str) -> list[Enqueued]:
        if tx is not None:
            if kind_of(tx) not in SYNC:
                return self._opening.call_sync(lambda driver: self._joining(driver, jobs, tx, asked), call=call)
            return self._opening.with_tx_sync(
                lambda driver: self._joining(driver, jobs, tx, asked), call=call, opens=self._outbox is None
            )
        if len(jobs) == 1:
            answer = self._opening.call_sync(lambda _: self._opening.store(jobs[0]), call=call)
            return [_judged(answer, jobs[0], asked)]
        return self._opening.call_sync(lambda driver: _own(driver, jobs, asked), call=call)

    @cached_property
    def _code_version(self) -> str | None:
        return _settings.load().code_version

    def _begin(self, handle: Any, options: Mapping[str, Any], *, sync: bool, call: str) -> tuple[Wishes, object | None]:
        if not self._registry.holds(handle) or handle.kind != JobHandle.kind:
            raise Invariant(
                f"{call}: {handle!r:.100} is not a job that is registered here", fix="list it in App(jobs=[…])"
            )
        asked = wishes(f"job {handle.name}", options)
        tx = joined(self._application(), options.get("tx"), sync=sync, required=self._required, call=call)
        if tx is not None and self._outbox is not None and asked.raise_on_conflict:
            raise OutboxConflict(
                f'{call}: job {handle.name} is staged in the outbox, and on_conflict="error" asks for what only the '
                "queue knows, once the row is published"
            )
        return asked, self._opening.joinable(tx)

    async def _joining(self, driver: Driver, jobs: Sequence[NewJob], tx: object, asked: Wishes) -> list[Enqueued]:
        if not jobs:
            return []
        if self._outbox is not None:
            return await self._outbox.stage(jobs, tx=tx)
        async with savepoint(tx, needed=asked.raise_on_conflict and len(jobs) > 1):
            return _all_judged(await driver.enqueue(jobs, tx=tx), jobs, asked)

    def _row(self, handle: JobHandle[Any], item: Any, asked: Wishes) -> NewJob:
        return row(handle, item, asked, limit=self._limit, limits=self._limits, code_version=self._code_version)


def _told(span: Any, answers: list[Enqueued]) -> list[Enqueued]:
    if span is not None and answers:
        produced(span, answers[0].id, deduped=answers[0].deduped, count=len(answers))
    return answers


async def _own(driver: Driver, jobs: Sequence[NewJob], asked: Wishes) -> list[Enqueued]:
    if not jobs:
        return []
    if not asked.raise_on_conflict:
        return await driver.enqueue(jobs)
    async with driver.transaction() as tx:
        return _all_judged(await driver.enqueue(jobs, tx=tx), jobs, asked)


def _all_judged(answers: Sequence[Enqueued], jobs: Sequence[NewJob], asked: Wishes) -> list[Enqueued]:
    return [_judged(answer, job, asked) for answer, job in zip(answers, jobs, strict=True)]


def _judged(answer: Enqueued, job: NewJob, asked: Wishes) -> Enqueued:
    if answer.deduped and asked.raise_on_conflict:
        raise JobDuplicate(
            f"job {job.name}: the key {job.idempotency_key!r:.200} is held by {answer.id}, which is {answer.state}",
            fix=f"ultijobs jobs show {answer.id}",
            meta={
                "name": job.name,
                "idempotency_key": job.idempotency_key,
                "tenant_id": job.tenant_id,
                "existing_id": str(answer.id),
                "run_id": str(answer.run_id),
                "state": str(answer.state),
            },
        )
    return answer
