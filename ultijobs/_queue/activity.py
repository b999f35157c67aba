"""What operators do, as the activity table keeps it: who, from where, what, why and with which result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

__all__ = ["ActivityEntry", "ActivityRow"]


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """What an operator is about to do, before it is done."""

    actor: str
    source: str
    """`cli`, `tui` or `api`."""
    action: str
    target: str
    reason: str | None = None
    as_of: datetime | None = None
    matched: int | None = None
    equivalent: str | None = None
    """The command that does the same."""
    detail: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """What an operator did. `finished_at` is None while it is under way, and for good when its process died."""

    id: UUID
    at: datetime
    actor: str
    source: str
    action: str
    target: str
    reason: str | None
    as_of: datetime | None
    matched: int | None
    done: int | None
    refused: int | None
    failed: int | None
    finished_at: datetime | None
    equivalent: str | None
    detail: Mapping[str, object]
