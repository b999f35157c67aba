"""Claims in flight, all of them or those of a filter."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from ultijobs._queue.driver import InspectionStore
from ultijobs._queue.records import JobState
from ultijobs._queue.views import JobRow, LeaseRow, Sort
from ultijobs._queue.where import Field, Op, Term, Where

__all__ = ["leases"]

_RUNNING: Final = Term(Field.STATE, Op.IS, (JobState.RUNNING.value,))


async def leases(store: InspectionStore, where: Where, limit: int) -> list[LeaseRow]:
    """The lease that ends first in front. A filter that scans looks at a bounded number of running jobs."""
    if not where.terms and where.tenant is None:
        return await store.leases(limit=limit)
    page = await store.jobs(replace(where, terms=(*where.terms, _RUNNING)), sort=Sort.OLDEST, limit=limit)
    held = [lease for row in page.rows if (lease := _lease(row, expired_by=page.as_of)) is not None]
    return sorted(held, key=lambda lease: (lease.lease_until, lease.id))


def _lease(row: JobRow, *, expired_by: datetime) -> LeaseRow | None:
    """None for a row that was settled meanwhile."""
    if row.lease_until is None:
        return None
    return LeaseRow(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        queue=row.queue,
        tenant_id=row.tenant_id,
        worker_id=row.worker_id,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        lease_no=row.lease_no,
        running_step=row.running_step,
        started_at=row.started_at,
        lease_until=row.lease_until,
        expired=row.lease_until < expired_by,
        progress=row.progress,
    )
