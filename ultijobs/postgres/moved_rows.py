"""Rows as they move between databases: the columns that travel, read into values and written from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ultijobs._queue.moving import MovedEvent, MovedJob, MovedStep
from ultijobs._queue.steps import AttemptRecord
from ultijobs.postgres.rows import in_time

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = [
    "ATTEMPT_TYPES",
    "EVENT_TYPES",
    "JOB_TYPES",
    "STEP_TYPES",
    "attempt_columns",
    "event_columns",
    "job_columns",
    "job_of",
    "step_columns",
    "step_of",
    "unnested",
]

JOB_TYPES: Final = {
    "id": "uuid",
    "run_id": "uuid",
    "name": "text",
    "queue": "text",
    "state": "text",
    "run_at": "timestamptz",
    "due_at": "timestamptz",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
    "started_at": "timestamptz",
    "finished_at": "timestamptz",
    "attempt": "int",
    "max_attempts": "int",
    "claims": "int",
    "lease_no": "bigint",
    "priority": "int",
    "lane": "text",
    "unique_mode": "text",
    "key_held": "boolean",
    "idempotency_key": "text",
    "tenant_id": "text",
    "worker_id": "text",
    "stop_reason": "text",
    "error_code": "text",
    "fingerprint": "text",
    "last_error": "text",
    "progress": "json",
    "behind": "uuid",
    "enqueued_by": "text",
    "traceparent": "text",
    "code_version": "text",
    "input": "json",
}
STEP_TYPES: Final = {
    "run_id": "uuid",
    "name": "text",
    "kind": "text",
    "status": "text",
    "position": "int",
    "tries": "int",
    "lease_no": "bigint",
    "started_at": "timestamptz",
    "completed_at": "timestamptz",
    "wake_at": "timestamptz",
    "event": "text",
    "match": "text",
    "event_id": "uuid",
    "error": "text",
    "output": "json",
}
ATTEMPT_TYPES: Final = {
    "run_id": "uuid",
    "job_id": "uuid",
    "attempt": "int",
    "lease_no": "bigint",
    "worker_id": "text",
    "outcome": "text",
    "started_at": "timestamptz",
    "ended_at": "timestamptz",
    "error_code": "text",
    "error": "text",
    "traceback": "text",
}
EVENT_TYPES: Final = {
    "id": "uuid",
    "name": "text",
    "key": "text",
    "payload": "json",
    "published_at": "timestamptz",
    "expires_at": "timestamptz",
    "published_by": "text",
}


def unnested(types: Mapping[str, str]) -> str:
    """`select` takes it: the rows of one array per column. JSON travels as text."""
    columns = ", ".join(f"t.{name}::json" if kind == "json" else f"t.{name}" for name, kind in types.items())
    arrays = ", ".join(
        f"${place}::{'text' if kind == 'json' else kind}[]" for place, kind in enumerate(types.values(), 1)
    )
    return f"{columns} from unnest({arrays}) t({', '.join(types)})"


def job_of(row: Record, steps: Sequence[MovedStep], attempts: Sequence[AttemptRecord]) -> MovedJob:
    """A row that waits behind itself waits for its move alone, and for nobody where it goes."""
    told: dict[str, Any] = {name: row[name] for name in JOB_TYPES}
    told |= {name: in_time(row[name]) for name in ("run_at", "due_at", "created_at")}
    told["behind"] = None if row["behind"] == row["id"] else row["behind"]
    return MovedJob(**told, steps=tuple(steps), attempts=tuple(attempts))


def step_of(row: Record) -> MovedStep:
    return MovedStep(**{name: row[name] for name in STEP_TYPES if name != "run_id"})


def job_columns(jobs: Sequence[MovedJob]) -> list[list[object]]:
    return _columns(jobs, JOB_TYPES)


def event_columns(events: Sequence[MovedEvent]) -> list[list[object]]:
    return _columns(events, EVENT_TYPES)


def attempt_columns(jobs: Sequence[MovedJob]) -> list[list[object]]:
    return _columns([attempt for job in jobs for attempt in job.attempts], ATTEMPT_TYPES)


def step_columns(jobs: Sequence[MovedJob]) -> list[list[object]]:
    runs: list[UUID] = [job.run_id for job in jobs for _ in job.steps]
    steps = [step for job in jobs for step in job.steps]
    return [list(runs), *_columns(steps, [name for name in STEP_TYPES if name != "run_id"])]


def _columns(rows: Sequence[object], names: Iterable[str]) -> list[list[object]]:
    return [[getattr(row, name) for row in rows] for name in names]
