"""What is told once in a fleet: who publishes its gauges, and which process counts a lost lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias
from uuid import UUID

__all__ = ["LostClaim", "Seat", "TelemetryStore"]

Seat: TypeAlias = Literal["queues", "outbox"]
"""Whose gauges a publisher exports."""


@dataclass(frozen=True, slots=True)
class LostClaim:
    """A claim that its worker does not hold any more, whatever its row says."""

    id: UUID
    lease_no: int


class TelemetryStore(Protocol):
    """Safe to call from every process at once."""

    async def take_seat(self, seat: Seat, holder: str, *, lease: timedelta) -> bool:
        """Takes a seat that is free or lapsed, or keeps what is ours; True while it is ours."""
        ...

    async def leave_seat(self, seat: Seat, holder: str) -> None:
        """Frees the seat at once; does nothing to another's."""
        ...

    async def note_lost(self, claims: Sequence[LostClaim]) -> list[bool]:
        """Records the attempt of each as lost, ahead of the reaper; True where this call did so.

        False when the claim has been reaped, settled or cancelled: then somebody else has told what became of it. The
        row stays running until its lease lapses.
        """
        ...
