"""Inserting jobs: the key they hold, whom they wait behind, and transactions that keep them back until the commit."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime

from ultijobs._queue.records import Enqueued, JobState, NewJob, UniqueMode
from ultijobs._queue.storable import refuse_unstorable
from ultijobs._queue.telling import SignalKind
from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.memory._rows import Key, Row
from ultijobs.memory._store import Store

__all__ = ["Transaction", "Transactions"]

_PATIENCE_S = 5.0
"""How long an enqueue waits for another transaction to decide about its key."""


class Transaction:
    """Rows that nobody else sees until the commit."""

    __slots__ = ("__weakref__", "at_commit", "ended", "rows", "store")

    def __init__(self, store: Store) -> None:
        self.store = store
        self.rows: list[Row] = []
        self.at_commit: list[Callable[[], object]] = []
        self.ended = False

    def refuse_ended(self) -> None:
        if self.ended:
            raise Invariant("the transaction has ended already", fix="join it before its block is left")

    def holder(self, key: Key) -> Row | None:
        return next((row for row in self.rows if row.key == key), None)


class Transactions:
    """All enqueues pass through here, those of a caller's transaction and those of their own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: list[Transaction] = []

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncGenerator[Transaction]:
        tx = Transaction(self._store)
        with self._store.lock:
            self._open.append(tx)
        try:
            yield tx
        except BaseException:
            self._end(tx, keep=False)
            raise
        else:
            self._end(tx, keep=True)

    def at_commit(self, tx: object, work: Callable[[], object]) -> None:
        """Calls `work` when `tx` commits, and never when it does not."""
        joined = _own(tx)
        with self._store.lock:
            joined.refuse_ended()
            joined.at_commit.append(work)

    async def enqueue(self, jobs: Sequence[NewJob], given: object | None) -> list[Enqueued]:
        tx = None if given is None else _own(given)
        refuse_unstorable(jobs)
        keys = {key for job in jobs if (key := _key(job)) is not None}
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            with self._store.lock:
                if tx is not None:
                    tx.refuse_ended()
                if not any(other.holder(key) for other in self._open if other is not tx for key in keys):
                    return self._insert_all(jobs, tx)
            if time.monotonic() >= deadline:
                raise DriverUnavailable(
                    f"a transaction that holds the key of {jobs[0].name} did not end within {_PATIENCE_S:.0f} s",
                    fix="commit or roll back the other transaction first",
                )
            await asyncio.sleep(0.002)

    def _insert_all(self, jobs: Sequence[NewJob], tx: Transaction | None) -> list[Enqueued]:
        now = self._store.now()
        answers: list[Enqueued] = []
        fresh: list[Row] = []
        for job in jobs:
            row, deduped = self._insert(job, tx, now)
            answers.append(Enqueued(row.id, row.run_id, deduped, JobState(row.shown_state(now))))
            if not deduped:
                fresh.append(row)
                if tx is None:
                    self._store.put(row)
                else:
                    tx.rows.append(row)
        if tx is None:
            self._announce(fresh)
        return answers

    def _insert(self, job: NewJob, tx: Transaction | None, now: datetime) -> tuple[Row, bool]:
        """The new row, not filed yet, or the one that is there already."""
        known = self._store.find(job.id) or next((r for r in (tx.rows if tx else ()) if r.id == job.id), None)
        if known is not None:
            return known, True
        row = _row(job, now)
        if row.key is None:
            return row, False
        if tx is not None and (own := tx.holder(row.key)) is not None:
            return own, True
        twins = self._store.live_twins(row.key)
        holder = next((twin for twin in twins if twin.key_held), None)
        if holder is not None:
            return holder, True
        if twins and row.unique is UniqueMode.RERUN:
            row.behind = twins[-1].id
        return row, False

    def _end(self, tx: Transaction, *, keep: bool) -> None:
        with self._store.lock:
            tx.ended = True
            self._open.remove(tx)
            if keep:
                for row in tx.rows:
                    self._store.put(row)
                for act in tx.at_commit:
                    act()
                self._announce(tx.rows)

    def _announce(self, rows: Sequence[Row]) -> None:
        for queue in dict.fromkeys(row.queue for row in rows):
            self._store.signals.send(SignalKind.QUEUE, queue)


def _own(tx: object) -> Transaction:
    if isinstance(tx, Transaction):
        return tx
    raise Invariant(
        f"the memory driver cannot join a transaction of {type(tx).__module__}.{type(tx).__qualname__}",
        fix="pass tx=False, or open one with `async with driver.transaction() as tx:`",
    )


def _key(job: NewJob) -> Key | None:
    return None if job.idempotency_key is None else (job.name, job.tenant_id or "", job.idempotency_key)


def _row(job: NewJob, now: datetime) -> Row:
    due = now if job.delay is None else now + job.delay
    if job.run_at is not None:
        due = job.run_at
    due = max(due, now)
    return Row(
        id=job.id,
        run_id=job.id,
        name=job.name,
        queue=job.queue,
        tenant_id=job.tenant_id,
        idempotency_key=job.idempotency_key,
        unique=job.unique,
        lane=job.lane,
        priority=job.priority,
        max_attempts=job.max_attempts,
        input=job.input,
        run_at=due,
        due_at=due,
        created_at=now,
        updated_at=now,
        enqueued_by=job.enqueued_by,
        traceparent=job.traceparent,
        code_version=job.code_version,
    )
