"""Takes retries and cancels back in memory, as long as nothing has come of the job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ultijobs._queue.records import ActResult
from ultijobs._queue.telling import SignalKind
from ultijobs._queue.undoing import REMEMBERED, Standing, in_the_way, untouched
from ultijobs._queue.views import Count
from ultijobs.memory._rows import Found, Row
from ultijobs.memory._store import Store

__all__ = ["MemoryUndo"]


class MemoryUndo:
    """See `UndoStore`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def jobs(
        self, act: UUID, *, after: UUID | None = None, limit: int = 500, tenant: str | None = None
    ) -> list[UUID]:
        with self._store.lock:
            return [job for job in self._of(act, tenant) if after is None or job > after][:limit]

    async def count(self, act: UUID, *, cap: int = 10_000, tenant: str | None = None) -> Count:
        with self._store.lock:
            found = len(self._of(act, tenant))
            return Count(min(found, cap), "capped" if found > cap else "exact")

    async def foresee(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        with self._store.lock:
            return [self._refusal(act, job, tenant) or ActResult(job, done=True) for job in ids]

    async def undo(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        with self._store.lock:
            return [self._undo(act, job, tenant) for job in ids]

    def forget(self) -> None:
        """Acts of more than a day ago are not taken back."""
        limit = self._store.now() - REMEMBERED
        for job in [job for job, found in self._store.found.items() if found.at < limit]:
            del self._store.found[job]

    def _of(self, act: UUID, tenant: str | None) -> list[UUID]:
        jobs = (job for job, found in self._store.found.items() if found.act == act)
        return sorted(job for job in jobs if tenant is None or self._tenant(job) == tenant)

    def _tenant(self, job: UUID) -> str | None:
        row = self._store.find(job)
        return None if row is None else row.tenant_id

    def _found(self, act: UUID, job: UUID) -> Found | None:
        found = self._store.found.get(job)
        over = found is None or found.act != act or found.at <= self._store.now() - REMEMBERED
        return None if over else found

    def _undo(self, act: UUID, job: UUID, tenant: str | None) -> ActResult:
        refused = self._refusal(act, job, tenant)
        found, row = self._found(act, job), self._store.find(job)
        if refused is not None or found is None or row is None:
            return refused or ActResult(job, done=False)
        del self._store.found[job]
        for name, value in found.before.items():
            setattr(row, name, value)
        self._place(row, self._store.now())
        return ActResult(job, done=True)

    def _place(self, row: Row, now: datetime) -> None:
        """Files the row where its state belongs."""
        row.updated_at = now
        if row.state in {"done", "cancelled"}:
            self._store.shelve(row)
            return
        self._store.put(row)
        if row.live:
            self._store.signals.send(SignalKind.QUEUE, row.queue)

    def _refusal(self, act: UUID, job: UUID, tenant: str | None) -> ActResult | None:
        found, row = self._found(act, job), self._store.find(job)
        if row is not None and tenant is not None and row.tenant_id != tenant:
            row = None
        refused = untouched(
            Standing(
                id=job,
                act=None if found is None else found.kind,
                dropped=0 if found is None else found.dropped,
                lease_no=0 if found is None else found.lease_no,
                state=None if row is None else row.shown_state(self._store.now()),
                lease_no_now=0 if row is None else row.lease_no,
                moves=row is not None and row.moves,
            )
        )
        if refused is not None or found is None or row is None or found.kind == "retry":
            return refused
        twin = self._store.twin_in_the_way(row)
        return None if twin is None else in_the_way(job, twin.id, twin.shown_state(self._store.now()))
