"""Who asked for a job: attribution only, a handler never runs with an actor's rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultijobs._json import refuse_unstorable
from ultijobs.errors import Invariant

__all__ = ["Actor"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Someone who enqueues; stored as `enqueued_by`.

    A `tenant` of the actor must be the job's own, else the enqueue is `TenantMismatch` and stores nothing.
    """

    id: str
    tenant: str | None = None

    def __post_init__(self) -> None:
        for of in ("id", "tenant"):
            value: Any = getattr(self, of)
            if of == "tenant" and value is None:
                continue
            if not isinstance(value, str) or not value:
                raise Invariant(f"Actor: {of} is {value!r:.100}", fix=f"set {of}= to a text that is not empty")
            refuse_unstorable(value, what=f"actor.{of}")
