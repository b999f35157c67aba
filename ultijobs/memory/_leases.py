"""Renewing leases, as the keeper does from a thread and loop of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ultijobs._queue.claims import Beat, BeatAnswer
from ultijobs._queue.telling import WorkerBeat, WorkerOrder
from ultijobs.memory import _operations
from ultijobs.memory._fates import fate_of
from ultijobs.memory._store import Store

__all__ = ["MemoryLeaseLink"]


class MemoryLeaseLink:
    """Reaches the store under its lock; there is no connection to open."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def renew(self, beats: Sequence[Beat], lease: timedelta) -> list[BeatAnswer]:
        with self._store.lock:
            return [_renew(self._store, beat, lease) for beat in beats]

    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        with self._store.lock:
            return _operations.beat(self._store, beat)


def _renew(store: Store, beat: Beat, lease: timedelta) -> BeatAnswer:
    row = store.jobs.get(beat.id)
    if row is None or not row.holds(beat.lease_no):
        return BeatAnswer.CANCELLED if fate_of(store, beat.id, beat.lease_no).cancelled else BeatAnswer.LOST
    row.lease_until = store.now() + lease
    row.running_step = beat.step
    row.progress = beat.progress or row.progress
    row.abandoned = beat.error_code or row.abandoned
    return BeatAnswer.HELD
