"""The staged outbox in memory: rows of a transaction appear together at its commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID
from weakref import WeakKeyDictionary

from ultijobs._queue.events import NewEvent
from ultijobs._queue.outbox import (
    OutboxDepth,
    OutboxKind,
    OutboxPage,
    OutboxRow,
    OutboxState,
    Published,
    Staged,
    StagedEvent,
    StagedJob,
    Unsent,
)
from ultijobs._queue.records import ActResult, Enqueued, JobState, NewJob
from ultijobs._queue.storable import refuse_unstorable
from ultijobs._queue.views import Count
from ultijobs.errors import Invariant, JobNotRetryable, JobUnknown, OutboxMisplaced
from ultijobs.memory._enqueue import Transaction
from ultijobs.memory._store import Store

__all__ = ["MemoryOutbox"]


@dataclass(slots=True)
class _Row:
    sent: NewJob | NewEvent
    tx: int
    staged_at: datetime
    attempts: int = 0
    claim_no: int = 0
    last_error: str | None = None
    claimed_at: datetime | None = None
    claimed_by: str | None = None
    next_at: datetime | None = None
    published_at: datetime | None = None
    set_aside_at: datetime | None = None
    held_by: UUID | None = None
    job_id: UUID | None = None

    @property
    def state(self) -> OutboxState:
        if self.published_at is not None:
            return OutboxState.PUBLISHED
        return OutboxState.STAGED if self.set_aside_at is None else OutboxState.SET_ASIDE

    @property
    def tenant_id(self) -> str | None:
        return None if isinstance(self.sent, NewEvent) else self.sent.tenant_id

    def free(self, now: datetime, lease: timedelta) -> bool:
        claimed = self.claimed_at is not None and self.claimed_at >= now - lease
        return not claimed and (self.next_at is None or self.next_at <= now)


class MemoryOutbox:
    """See `OutboxStore`; rows are kept in the order in which their transactions began to stage."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[UUID, _Row] = {}
        self._numbers: WeakKeyDictionary[Transaction, int] = WeakKeyDictionary()
        self._counted = 0

    async def identity(self) -> str:
        return self._store.identity

    async def stage(self, jobs: Sequence[NewJob], *, tx: object, expected: str | None = None) -> list[Enqueued]:
        refuse_unstorable(jobs)
        with self._store.lock:
            joined, number = self._joined(tx, expected)
            now = self._store.now()
            answers: list[Enqueued] = []
            first: dict[tuple[str, str, str], Enqueued] = {}
            for job in jobs:
                key = None if job.idempotency_key is None else (job.name, job.tenant_id or "", job.idempotency_key)
                if key is not None and key in first:
                    answers.append(replace(first[key], deduped=True))
                    continue
                joined.at_commit.append(partial(self._rows.__setitem__, job.id, _Row(job, number, now)))
                late = (job.run_at is not None and job.run_at > now) or bool(job.delay)
                answer = Enqueued(job.id, job.id, deduped=False, state=JobState.DELAYED if late else JobState.READY)
                answers.append(answer)
                if key is not None:
                    first[key] = answer
            return answers

    async def stage_events(self, events: Sequence[NewEvent], *, tx: object, expected: str | None = None) -> None:
        with self._store.lock:
            joined, number = self._joined(tx, expected)
            now = self._store.now()
            for event in events:
                joined.at_commit.append(partial(self._rows.__setitem__, event.id, _Row(event, number, now)))

    def _joined(self, tx: object, expected: str | None) -> tuple[Transaction, int]:
        """The transaction and its number; the caller holds the lock."""
        if not isinstance(tx, Transaction):
            raise Invariant(
                f"the memory outbox cannot stage in a transaction of {type(tx).__module__}.{type(tx).__qualname__}",
                fix="open one with `async with driver.transaction() as tx:`",
            )
        if expected not in {None, tx.store.identity}:
            raise OutboxMisplaced("tx is of another store in memory than the outbox", meta={"database": "in memory"})
        if tx.ended:
            raise Invariant("the transaction has ended already", fix="enqueue before its block is left")
        if tx not in self._numbers:
            self._counted += 1
            self._numbers[tx] = self._counted
        return tx, self._numbers[tx]

    async def claim(self, claimant: str, *, limit: int, lease: timedelta) -> list[Staged]:
        with self._store.lock:
            now = self._store.now()
            stuck: set[int] = set()
            taken: list[Staged] = []
            for row in self._pending():
                if row.tx in stuck or not row.free(now, lease):
                    stuck.add(row.tx)
                elif len(taken) < limit:
                    row.claimed_at, row.claimed_by = now, claimant
                    row.claim_no += 1
                    taken.append(_claimed(row, now))
            return taken

    async def mark(self, rows: Sequence[Published]) -> list[UUID]:
        with self._store.lock:
            marked: list[UUID] = []
            for told in rows:
                row = self._held(told.id, told.claim_no)
                if row is not None:
                    row.published_at, row.job_id = self._store.now(), told.job_id
                    row.claimed_at = row.last_error = row.next_at = None
                    marked.append(told.id)
            return marked

    async def fail(self, rows: Sequence[Unsent]) -> list[UUID]:
        with self._store.lock:
            now = self._store.now()
            aside: list[UUID] = []
            for told in rows:
                row = self._held(told.id, told.claim_no)
                if row is None:
                    continue
                row.attempts += 1
                row.last_error, row.claimed_at = told.error, None
                if told.retry_in is not None:
                    row.next_at = now + told.retry_in
                    continue
                row.set_aside_at = now
                aside.append(told.id)
                order = list(self._rows.values())
                for later in order[order.index(row) + 1 :]:
                    if later.tx == row.tx and later.state is OutboxState.STAGED:
                        later.set_aside_at, later.held_by, later.claimed_at = now, told.id, None
                        later.last_error = f"set aside with {told.id}"
                        aside.append(later.sent.id)
            return aside

    async def release(self, rows: Sequence[Staged]) -> None:
        with self._store.lock:
            for told in rows:
                row = self._held(told.id, told.claim_no)
                if row is not None:
                    row.claimed_at = None

    async def rows(
        self,
        states: Sequence[OutboxState] = (),
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> OutboxPage:
        with self._store.lock:
            found = sorted(
                (
                    row
                    for row in self._rows.values()
                    if (not states or row.state in states)
                    and (after is None or row.sent.id < UUID(after))
                    and tenant in {None, row.tenant_id}
                ),
                key=lambda row: row.sent.id,
                reverse=True,
            )
            shown = [_shown(row) for row in found[:limit]]
            return OutboxPage(shown, str(shown[-1].id) if len(found) > limit else None)

    async def resolve(self, tail: str, *, tenant: str | None = None, limit: int = 3) -> list[UUID]:
        with self._store.lock:
            digits = tail.replace("-", "").lower()
            own = (key for key, row in self._rows.items() if tenant in {None, row.tenant_id})
            return sorted(key for key in own if key.hex.endswith(digits))[:limit]

    async def depth(self, *, cap: int = 10_000) -> OutboxDepth:
        return self.counted(cap)

    def counted(self, cap: int) -> OutboxDepth:
        """As `depth`, for those who read more in the same moment."""
        with self._store.lock:
            staged = list(self._pending())
            aside = [row.set_aside_at for row in self._rows.values() if row.set_aside_at is not None]
            oldest = staged[0].staged_at if staged else None
            return OutboxDepth(_count(len(staged), cap), oldest, _count(len(aside), cap), min(aside, default=None))

    async def retry(self, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        with self._store.lock:
            results: dict[UUID, ActResult] = {}
            for asked in dict.fromkeys(ids):
                row = self._rows.get(asked)
                if row is None or tenant not in {None, row.tenant_id}:
                    cause = f"there is no outbox row {asked}"
                    results[asked] = ActResult(asked, done=False, code=JobUnknown.code, cause=cause)
                elif row.state is not OutboxState.SET_ASIDE and asked not in results:
                    cause = f"outbox row {asked} is {row.state}, not set aside"
                    results[asked] = ActResult(asked, done=False, code=JobNotRetryable.code, cause=cause)
                else:
                    for freed in (row, *(other for other in self._rows.values() if other.held_by == asked)):
                        freed.set_aside_at = freed.held_by = freed.next_at = None
                        freed.attempts = 0
                        results[freed.sent.id] = ActResult(freed.sent.id, done=True)
            return list(results.values())

    def published(self, before: datetime) -> int:
        """How many rows were published before; the caller holds the lock."""
        return sum(row.published_at is not None and row.published_at < before for row in self._rows.values())

    async def forget(self, older_than: timedelta, *, limit: int = 1_000) -> int:
        with self._store.lock:
            before = self._store.now() - older_than
            old = [key for key, row in self._rows.items() if row.published_at is not None and row.published_at < before]
            for key in old[:limit]:
                del self._rows[key]
            return len(old[:limit])

    def _pending(self) -> Iterable[_Row]:
        pending = [row for row in self._rows.values() if row.state is OutboxState.STAGED]
        return sorted(pending, key=lambda row: row.tx)

    def _held(self, id: UUID, claim_no: int) -> _Row | None:
        row = self._rows.get(id)
        held = row is not None and row.claim_no == claim_no and row.claimed_at is not None and row.published_at is None
        return row if held else None


def _claimed(row: _Row, now: datetime) -> Staged:
    sent = row.sent
    if isinstance(sent, NewEvent):
        return StagedEvent(sent, row.claim_no, row.attempts, str(row.tx))
    if sent.delay is not None:
        sent = replace(sent, delay=max(timedelta(0), sent.delay - (now - row.staged_at)))
    return StagedJob(sent, row.claim_no, row.attempts, str(row.tx))


def _shown(row: _Row) -> OutboxRow:
    return OutboxRow(
        id=row.sent.id,
        kind=OutboxKind.EVENT if isinstance(row.sent, NewEvent) else OutboxKind.JOB,
        name=row.sent.name,
        queue=None if isinstance(row.sent, NewEvent) else row.sent.queue,
        tenant_id=row.tenant_id,
        state=row.state,
        attempts=row.attempts,
        last_error=row.last_error,
        staged_at=row.staged_at,
        published_at=row.published_at,
        set_aside_at=row.set_aside_at,
        next_at=row.next_at,
        claimed_at=row.claimed_at,
        claimed_by=row.claimed_by,
        held_by=row.held_by,
        job_id=row.job_id,
    )


def _count(value: int, cap: int) -> Count:
    return Count(min(value, cap), "capped" if value > cap else "exact")
