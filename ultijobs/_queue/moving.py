"""The contract of a move: jobs leave one store for another whole, and are never runnable in both at once.

A job is held in its source first, where nobody claims it any more; then it is received by the target, found there
again, and only then ended in the source. Whoever stops in between leaves jobs that are held; the same calls go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from ultijobs._queue.records import ActResult
from ultijobs._queue.steps import AttemptRecord

__all__ = ["Holding", "MoveStore", "MovedEvent", "MovedJob", "MovedStep", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Which store this is, however its address is spelled."""

    identity: str
    """The same text for the same tables, and for no others."""
    durable: bool
    """False for what ends with its process."""


@dataclass(frozen=True, slots=True)
class MovedStep:
    """A step's record as stored; `event_id` is the event that completed it."""

    name: str
    kind: str
    status: str
    position: int
    tries: int
    lease_no: int
    started_at: datetime
    completed_at: datetime | None
    wake_at: datetime | None
    event: str | None
    match: str | None
    event_id: UUID | None
    error: str | None
    output: str | None


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that no claim holds, whole. `input`, `progress` and the outputs of steps are JSON text."""

    id: UUID
    run_id: UUID
    name: str
    queue: str
    state: str
    run_at: datetime
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    claims: int
    lease_no: int
    priority: int
    lane: str
    unique_mode: str
    key_held: bool
    idempotency_key: str | None
    tenant_id: str | None
    worker_id: str | None
    stop_reason: str | None
    error_code: str | None
    fingerprint: str | None
    last_error: str | None
    progress: str | None
    behind: UUID | None
    """The job whose end it waits for; that one moves with it."""
    enqueued_by: str | None
    traceparent: str | None
    code_version: str | None
    input: str
    steps: tuple[MovedStep, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedEvent:
    """A published event whole."""

    id: UUID
    name: str
    key: str | None
    payload: str
    published_at: datetime
    expires_at: datetime
    published_by: str | None


@dataclass(frozen=True, slots=True)
class Holding:
    """What a hold has got: the jobs that nobody claims here any more, and those that were refused."""

    jobs: list[MovedJob]
    refused: list[ActResult]


class MoveStore(Protocol):
    """Both ends of a move. Each call is one transaction, and may be repeated with the same effect."""

    async def place(self) -> Place: ...
    async def hold(self, ids: Sequence[UUID], *, to: str, identity: str) -> Holding:
        """Keeps jobs from being claimed, retried or cancelled here, and answers them whole.

        Those that wait behind one of them come along. One that runs, has ended, moves elsewhere, or waits behind a job
        that stays is refused and left as it is. `to` is told to people, `identity` is the target's.
        """
        ...

    async def receive(self, jobs: Sequence[MovedJob]) -> list[ActResult]:
        """Stores jobs under their ids with all that belongs to them; one that is here already is `done` too.

        One whose key a live job holds here is refused with `X_JOB_DUPLICATE`. Lease numbers that are given out later
        are above those of the jobs.
        """
        ...

    async def present(self, ids: Sequence[UUID]) -> Mapping[UUID, MovedJob]:
        """What is here of these, whole, whatever has become of it since."""
        ...

    async def depart(self, ids: Sequence[UUID], *, to: str, identity: str) -> list[ActResult]:
        """Ends held jobs here: they are `cancelled` with the code `X_JOB_MOVED`, and can never be retried."""
        ...

    async def let_go(self, ids: Sequence[UUID], *, identity: str) -> None:
        """Gives jobs back that are held for that target: they can be claimed here again."""
        ...

    async def events(self, *, since: datetime, after: UUID | None = None, limit: int = 500) -> list[MovedEvent]:
        """Events that have not expired, published at `since` or later, by id."""
        ...

    async def receive_events(self, events: Sequence[MovedEvent]) -> int:
        """Stores those that are not here; their delivery is `EventStore.deliver`'s. Answers how many were new."""
        ...
