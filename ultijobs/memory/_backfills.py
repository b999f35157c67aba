"""The ledger of backfills in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from ultijobs._queue.backfills import PassMark, PassRow, PassStart, PassStatus, Surveyed, running
from ultijobs._queue.records import Enqueued, JobState
from ultijobs.memory._rows import Row
from ultijobs.memory._store import Store

__all__ = ["MemoryBackfills"]


class MemoryBackfills:
    """`BackfillStore` of a store in memory."""

    __slots__ = ("_rows", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[UUID, PassRow] = {}
        """As they were written; what the job says of them is read off when they are."""

    async def begin(self, start: PassStart) -> PassRow | None:
        with self._store.lock:
            rival = self._rival(start)
            if rival is not None:
                raise running(start.name, rival)
            if not self._holds(start):
                return None
            now = self._store.now()
            known = self._rows.get(start.run_id)
            if known is None:
                known = PassRow(
                    run_id=start.run_id,
                    job_id=start.job_id,
                    name=start.name,
                    status=PassStatus.RUNNING.value,
                    checksum=start.checksum,
                    app_version=start.app_version,
                    environment=start.environment,
                    forced=start.forced,
                    rows=0,
                    batches=0,
                    sweep=0,
                    remaining=None,
                    counted_at=None,
                    counted_rows=0,
                    cursor=None,
                    in_hand=0,
                    in_hand_to=None,
                    started_at=now,
                    resumed_at=now,
                    resumed_rows=0,
                    updated_at=now,
                    completed_at=None,
                    job_state=None,
                    error_code=None,
                    last_error=None,
                )
            elif known.status != PassStatus.COMPLETED:
                known = replace(
                    known,
                    status=PassStatus.RUNNING.value,
                    resumed_at=now,
                    resumed_rows=known.rows,
                    updated_at=now,
                )
            self._rows[start.run_id] = known
            return replace(known, job_state="running")

    async def take(self, start: PassStart, rows: int, last: str) -> bool:
        with self._store.lock:
            known = self._rows.get(start.run_id)
            if known is not None and known.status != PassStatus.COMPLETED and self._holds(start):
                self._rows[start.run_id] = replace(known, in_hand=rows, in_hand_to=last)
            return self._holds(start)

    async def mark(self, mark: PassMark) -> bool:
        with self._store.lock:
            known = self._rows.get(mark.run_id)
            if known is not None and known.status != PassStatus.COMPLETED and self._holds(mark):
                now = self._store.now()
                known = replace(
                    known,
                    cursor=mark.cursor,
                    rows=mark.rows,
                    batches=mark.batches,
                    sweep=mark.sweep,
                    in_hand=mark.in_hand,
                    in_hand_to=mark.in_hand_to,
                    updated_at=now,
                )
                if mark.remaining is not None:
                    known = replace(known, remaining=mark.remaining, counted_at=now, counted_rows=mark.rows)
                self._rows[mark.run_id] = known
            return self._holds(mark)

    async def end(self, start: PassStart, status: PassStatus, *, remaining: int | None = None) -> bool:
        with self._store.lock:
            known = self._rows.get(start.run_id)
            if known is not None and known.status != PassStatus.COMPLETED and self._holds(start):
                now = self._store.now()
                final = status is PassStatus.COMPLETED
                self._rows[start.run_id] = replace(
                    known,
                    status=status.value,
                    remaining=known.remaining if remaining is None else remaining,
                    cursor=None if final else known.cursor,
                    completed_at=now if final else None,
                    updated_at=now,
                )
            return self._holds(start)

    async def completed(self, name: str) -> PassRow | None:
        with self._store.lock:
            return self._completed(name)

    async def passes(
        self,
        *,
        name: str | None = None,
        run_id: UUID | None = None,
        statuses: Sequence[PassStatus] = (),
        limit: int = 100,
    ) -> list[PassRow]:
        with self._store.lock:
            words = {status.value for status in statuses}
            found = (row for row in self._newest_first(name) if run_id in {None, row.run_id})
            return [row for row in found if not words or row.status in words][:limit]

    async def survey(self, names: Sequence[str]) -> list[Surveyed]:
        with self._store.lock:
            known = sorted({*names, *(row.name for row in self._rows.values())})
            return [self._surveyed(name) for name in known]

    async def reconcile(self) -> int:
        with self._store.lock:
            changed = 0
            for run_id, row in self._rows.items():
                status = self._shown(row).status
                if row.status == PassStatus.RUNNING and status != PassStatus.RUNNING:
                    self._rows[run_id] = replace(row, status=status)
                    changed += 1
            return changed

    async def live(self, name: str) -> Enqueued | None:
        with self._store.lock:
            job = min(self._keyed(name), key=lambda row: row.id, default=None)
            if job is None:
                return None
            return Enqueued(job.id, job.run_id, deduped=True, state=JobState(job.shown_state(self._store.now())))

    def _keyed(self, name: str) -> list[Row]:
        """The live jobs that are passes of this name."""
        keyed = self._store.jobs.values()
        return [row for row in keyed if row.name == row.idempotency_key == name and row.key_held and row.live]

    def _rival(self, start: PassStart) -> UUID | None:
        """The other live job that has begun a pass of the same name."""
        for row in self._rows.values():
            if row.name == start.name and row.run_id != start.run_id and row.status != PassStatus.COMPLETED:
                job = self._store.jobs.get(row.job_id)
                if job is not None and job.live:
                    return job.id
        return None

    def _holds(self, claim: PassStart | PassMark) -> bool:
        row = self._store.jobs.get(claim.job_id)
        return row is not None and row.holds(claim.lease_no)

    def _newest_first(self, name: str | None) -> Iterator[PassRow]:
        rows = [row for row in self._rows.values() if name in {None, row.name}]
        rows.sort(key=lambda row: (row.started_at, row.run_id), reverse=True)
        return map(self._shown, rows)

    def _completed(self, name: str) -> PassRow | None:
        return next((row for row in self._newest_first(name) if row.status == PassStatus.COMPLETED), None)

    def _surveyed(self, name: str) -> Surveyed:
        job = max(self._keyed(name), key=lambda row: row.id, default=None)
        return Surveyed(
            name=name,
            newest=next(self._newest_first(name), None),
            completed=self._completed(name),
            live_job=None if job is None else job.id,
            live_state=None if job is None else job.shown_state(self._store.now()),
        )

    def _shown(self, row: PassRow) -> PassRow:
        job = self._store.find(row.job_id)
        if job is None:
            return replace(row, status=_status(row, None))
        return replace(
            row,
            status=_status(row, job),
            job_state=job.shown_state(self._store.now()),
            error_code=job.error_code,
            last_error=job.last_error,
        )


def _status(row: PassRow, job: Row | None) -> str:
    """What the job says counts for more than what its last claim wrote."""
    if row.status == PassStatus.COMPLETED:
        return row.status
    if job is not None and job.live:
        return PassStatus.RUNNING.value
    if job is not None and job.state == "cancelled":
        return PassStatus.CANCELLED.value
    stopped = job is not None and job.state in {"dead", "failed"}
    return PassStatus.FAILED.value if stopped or row.status == PassStatus.RUNNING else row.status
