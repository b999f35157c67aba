"""What is told once in a fleet, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ultijobs._queue.records import Outcome
from ultijobs._queue.telemetry import LostClaim, Seat
from ultijobs.memory._store import Store

__all__ = ["MemoryTelemetry"]


class MemoryTelemetry:
    """See `TelemetryStore`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seats: dict[Seat, tuple[str, datetime]] = {}

    async def take_seat(self, seat: Seat, holder: str, *, lease: timedelta) -> bool:
        with self._store.lock:
            now = self._store.now()
            taken = self._seats.get(seat)
            if taken is not None and taken[0] != holder and taken[1] > now:
                return False
            self._seats[seat] = (holder, now + lease)
            return True

    async def leave_seat(self, seat: Seat, holder: str) -> None:
        with self._store.lock:
            if self._seats.get(seat, ("",))[0] == holder:
                del self._seats[seat]

    async def note_lost(self, claims: Sequence[LostClaim]) -> list[bool]:
        with self._store.lock:
            return [_note(self._store, claim) for claim in claims]


def _note(store: Store, claim: LostClaim) -> bool:
    row = store.jobs.get(claim.id)
    if row is None or not row.holds(claim.lease_no) or claim.lease_no in store.attempts.get(row.run_id, {}):
        return False
    code = row.abandoned or "X_JOB_LEASE_LOST"
    store.record_attempt(
        row,
        Outcome.LOST,
        store.now(),
        worker_id=row.worker_id,
        error_code=code,
        error=f"{code}: {row.worker_id} lost its lease in attempt {row.attempt} of {row.max_attempts}",
    )
    return True
