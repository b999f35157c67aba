"""Lost claims: counted once by whoever records them, and by their own worker for itself in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.support.eventually import eventually
from tests.unit.worker.flights import FakeBody, claimed
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.claims import Reaped
from ultijobs._queue.records import JobState
from ultijobs._queue.telemetry import LostClaim
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Flight
from ultijobs._worker.losses import Losses
from ultijobs._worker.tally import Tally
from ultijobs.errors import DriverUnavailable


class Store:
    """Is away until it is told what to answer."""

    def __init__(self) -> None:
        self.answer: bool | None = None
        self.asked: list[LostClaim] = []

    async def note_lost(self, claims: Sequence[LostClaim]) -> list[bool]:
        if self.answer is None:
            raise DriverUnavailable("away")
        self.asked += claims
        return [self.answer] * len(claims)


class Rig:
    def __init__(self) -> None:
        self.store: Any = Store()
        self.metrics = Metrics()
        self.tally = Tally(self.metrics)
        self.losses = Losses(self.store, self.tally, Trouble("w"), "w")

    def lose(self, lease_no: int) -> None:
        job = claimed(lease_no)
        self.losses.take(Flight(job, FakeBody(job), 0.0), "gone")

    def reap(self, lease_no: int, *, noted: bool = True) -> None:
        job = claimed(lease_no)
        self.losses.reaped(
            [Reaped(job.id, job.run_id, job.name, job.queue, lease_no, 1, "w", JobState.READY, noted=noted)]
        )

    def counted(self) -> tuple[int, object]:
        """In the heartbeat, and in the metrics."""
        return self.tally.counts()["lost"], self.metrics.read()[series.LEASES_LOST].get(("default",), 0)


async def test_a_loss_is_told_once_the_database_is_back() -> None:
    rig = Rig()
    rig.lose(1)
    await asyncio.sleep(0)
    assert rig.counted() == (1, 0)
    rig.store.answer = True
    await eventually(lambda: rig.counted() == (1, 1))
    await rig.losses.close()


async def test_a_loss_that_another_has_counted_is_counted_for_itself_alone() -> None:
    rig = Rig()
    rig.store.answer = False
    rig.lose(1)
    await eventually(lambda: rig.store.asked)
    await rig.losses.close()
    assert rig.counted() == (1, 0)


async def test_a_loss_of_its_own_that_it_reaps_itself_is_one() -> None:
    rig = Rig()
    rig.lose(1)
    rig.reap(1)
    rig.store.answer = False
    await eventually(lambda: rig.store.asked)
    rig.reap(2)
    rig.reap(3, noted=False)
    await rig.losses.close()
    assert rig.counted() == (2, 2), "its own, and that of a worker that is gone"


async def test_a_process_that_ends_does_not_wait_for_a_database_that_is_away() -> None:
    rig = Rig()
    rig.lose(1)
    async with asyncio.timeout(timedelta(seconds=5).total_seconds()):
        await rig.losses.close()
    assert rig.counted() == (1, 0)
