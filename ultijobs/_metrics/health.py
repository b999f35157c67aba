"""`Health`: whether a process makes progress, why not, and the facts that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Health"]


@dataclass(frozen=True, slots=True)
class Health:
    """Healthy when there is no reason against it. The facts are plain JSON values."""

    reasons: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def ok(self) -> bool:
        return not self.reasons

    def shown(self) -> dict[str, object]:
        """As `GET /health` answers it."""
        return {"status": "ok" if self.ok else "unavailable", "reasons": list(self.reasons), **self.facts}
