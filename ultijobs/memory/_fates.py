"""What became of a claim that no longer holds: told from the attempt it left, or from the state of its row."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ultijobs._queue.records import Outcome
from ultijobs.memory._store import Store

__all__ = ["Fate", "fate_of"]


@dataclass(frozen=True, slots=True)
class Fate:
    """`outcome` of the attempt's record where it has one, and where the row went with that claim as its last."""

    outcome: str | None
    state: str | None

    @property
    def cancelled(self) -> bool:
        return self.state == "cancelled" if self.outcome is None else self.outcome == Outcome.CANCELLED

    def landed(self, outcome: Outcome) -> bool:
        """True when a settlement with `outcome` is what ended it."""
        if self.outcome is not None:
            return self.outcome == outcome
        return self.state is not None and self.state == {Outcome.OK: "done", Outcome.SUSPENDED: "suspended"}.get(
            outcome
        )


def fate_of(store: Store, id: UUID, lease_no: int) -> Fate:
    row = store.find(id)
    last = row if row is not None and row.lease_no == lease_no else None
    attempt = store.attempts.get(id if row is None else row.run_id, {}).get(lease_no)
    return Fate(None if attempt is None else attempt.outcome, None if last is None else last.state)
