"""Enqueue by the thousand: COPY first, and the statement that dedupes only for what COPY cannot take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg

from ultijobs._queue.records import Enqueued, JobState, NewJob, UniqueMode
from ultijobs.postgres.jobs import insert, key_order
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["COPY_FROM", "copy_or_insert", "tell"]

COPY_FROM: Final = 64
"""From this many rows on, COPY is the cheaper way."""

_COPY_CHUNK: Final = 5_000
_DOUBTFUL: Final = 4
"""Chunks that go the careful way after COPY met a key that is held: such keys come in company."""

_COLUMNS: Final = (
    "id",
    "run_id",
    "name",
    "queue",
    "tenant_id",
    "lane",
    "priority",
    "idempotency_key",
    "max_attempts",
    "unique_mode",
    "enqueued_by",
    "traceparent",
    "code_version",
    "input",
)

TELL: Final = "select pg_notify('{channel}', 'q:' || q) from unnest($1::text[]) q"


async def copy_or_insert(
    connection: Connection[Record], sql: Sql, jobs: Sequence[NewJob], limit: float
) -> list[Enqueued]:
    """Inserts or dedupes `jobs`, whose keys differ, on a connection of the driver's own with an open transaction."""
    answers: dict[UUID, Enqueued] = {}
    doubtful = 0
    if any(job.delay is not None or job.run_at is not None or job.unique is UniqueMode.RERUN for job in jobs):
        return await insert(connection, sql, jobs, frozenset(), limit)
    # Two transactions that share keys take them in one order.
    for chunk in _chunks(sorted(jobs, key=key_order)):
        if not doubtful and await _copied(connection, sql, chunk, limit):
            answers |= {job.id: Enqueued(job.id, job.id, deduped=False, state=JobState.READY) for job in chunk}
            continue
        doubtful = _DOUBTFUL if not doubtful else doubtful - 1
        inserted = await insert(connection, sql, chunk, frozenset(), limit)
        answers |= {job.id: answer for job, answer in zip(chunk, inserted, strict=True)}
    return [answers[job.id] for job in jobs]


async def tell(connection: Connection[Record], sql: Sql, queues: Sequence[str], limit: float) -> None:
    """Wakes the workers of `queues` when the transaction commits."""
    if queues:
        await connection.fetch(sql(TELL), list(queues), timeout=limit)


async def _copied(connection: Connection[Record], sql: Sql, jobs: Sequence[NewJob], limit: float) -> bool:
    """False when a key is held: then nothing of the chunk is there."""
    try:
        async with connection.transaction():
            await connection.copy_records_to_table(
                "x_jobs", schema_name=sql.schema, columns=_COLUMNS, records=map(_record, jobs), timeout=limit
            )
    except asyncpg.UniqueViolationError:
        return False
    return True


def _record(job: NewJob) -> tuple[object, ...]:
    return (
        job.id,
        job.id,
        job.name,
        job.queue,
        job.tenant_id,
        job.lane,
        job.priority,
        job.idempotency_key,
        job.max_attempts,
        job.unique.value,
        job.enqueued_by,
        job.traceparent,
        job.code_version,
        job.input,
    )


def _chunks(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    for start in range(0, len(jobs), _COPY_CHUNK):
        yield jobs[start : start + _COPY_CHUNK]
