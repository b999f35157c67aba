"""What worker processes tell the store and what it tells them: heartbeats, orders, the catalogue, hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

__all__ = ["CatalogEntry", "Signal", "SignalKind", "WorkerBeat", "WorkerOrder"]


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """A worker's row: who it is, what it serves, and proof of progress. Counters are totals since its start."""

    instance: UUID
    worker_id: str
    host: str
    pid: int
    version: str
    code_version: str | None
    environment: str | None
    queues: tuple[str, ...]
    names: tuple[str, ...]
    concurrency: int
    state: str
    """`running`, `draining`, `drained` or `stopped`; inspection derives healthy, idle, wedged and gone."""
    free_slots: int
    running: int
    loop_lag_ms: int
    rss_bytes: int
    claimed_ago_ms: int | None
    settled_ago_ms: int | None
    counters: Mapping[str, int]
    wedged: bool = False
    listening: bool = True
    lease_ms: int = 30_000
    full_queues: tuple[str, ...] = ()
    """Queues of which it runs as many as its limit lets it."""
    limited: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tenants of whom it starts nothing: for so many milliseconds, or with 0 until a job of theirs ends."""


class WorkerOrder(StrEnum):
    """What an operator asked of a worker, answered by its heartbeat."""

    NONE = "none"
    DRAIN = "drain"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A job, task, backfill or retention as an application declared it last; `kind` says which.

    `environment` and `code_version` are those of the process that declared it.
    """

    kind: str
    name: str
    queue: str | None
    declaration: Mapping[str, object]
    code_version: str | None = None
    environment: str | None = None
    last_seen: datetime | None = field(default=None, compare=False)
    """When a process declared it last, or confirmed that it still does; set by the store."""


class SignalKind(StrEnum):
    """What a subscription tells. `LOST`/`BACK` speak of the subscription itself."""

    QUEUE = "queue"
    CANCEL = "cancel"
    WORKER = "worker"
    EVENT = "event"
    """Events were committed that are to be delivered."""
    LOST = "lost"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Signal:
    kind: SignalKind
    value: str = ""
