"""What a store says of itself: the server as part of the patient. What a driver cannot answer, it says in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

__all__ = ["Blocked", "Health", "Snapshot", "TableHealth"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session that holds back vacuum. `pid` is 0 for a prepared transaction, whose name is then the `query`."""

    pid: int
    application: str
    state: str
    age_ms: int
    query: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """A statement that waits for a lock, and the sessions that it waits for."""

    pid: int
    application: str
    waited_ms: int
    query: str
    by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableHealth:
    """Rows as the server's statistics have them, so about right."""

    table: str
    live: int
    dead: int
    last_autovacuum: datetime | None


@dataclass(frozen=True, slots=True)
class Health:
    """The database as part of the patient. What a driver cannot answer is empty, and `lacks` says so in words."""

    kind: Literal["postgres", "memory"]
    version: str
    schema_version: int
    connections: int
    connection_limit: int
    snapshots: list[Snapshot]
    """Oldest first, ten at the most."""
    tables: list[TableHealth]
    """Most dead rows first."""
    blocked: int
    """Statements of this database that wait for a lock; the longest of them are in `waits`."""
    listeners: int
    notify_queue: float
    """How full the server's queue of notifications is, from 0 to 1."""
    as_of: datetime
    waits: list[Blocked] = field(default_factory=list[Blocked])
    applications: Mapping[str, int] = field(default_factory=dict[str, int])
    """Connections by the application that holds them, the most first."""
    invalid_indexes: list[str] = field(default_factory=list[str])
    lacks: tuple[str, ...] = ()
    clock_skew_ms: int | None = None
    """By how much this machine's clock is ahead of the database's; 0 when that is within the time of the question."""
