"""Settlements: sent until they land or cannot land any more, judged once, never after a loss."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from tests.support.eventually import eventually
from tests.unit.worker.flights import FakeBody, claimed, settlement
from ultijobs._queue.claims import Settlement, Verdict
from ultijobs._queue.records import Outcome
from ultijobs._service.trouble import Trouble
from ultijobs._worker.flight import Flight, Phase, Roster
from ultijobs._worker.losses import Losses
from ultijobs._worker.settle import Settler
from ultijobs._worker.tally import Tally
from ultijobs.errors import DriverUnavailable
from ultijobs.memory import MemoryDriver

LEASE = timedelta(seconds=0.4)


class Rig:
    def __init__(self, answer: Callable[[Settlement], Verdict]) -> None:
        self.answer = answer
        self.calls: list[list[Settlement]] = []
        self.landed: list[Settlement] = []
        self.ended: list[tuple[Flight, Outcome]] = []
        self.roster, self.tally = Roster(), Tally()
        self.settler = Settler(
            self.settle,
            lease=LEASE,
            roster=self.roster,
            tally=self.tally,
            losses=Losses(MemoryDriver().telemetry, self.tally, Trouble("w"), "w"),
            trouble=Trouble("w"),
            worker_id="w",
            landed=self.landed.append,
            ended=lambda flight, outcome, _: self.ended.append((flight, outcome)),
        )

    async def settle(self, batch: Sequence[Settlement]) -> list[Verdict]:
        self.calls.append(list(batch))
        return [self.answer(each) for each in batch]

    def flight(self, lease_no: int = 1) -> tuple[Flight, FakeBody]:
        job = claimed(lease_no)
        body = FakeBody(job)
        flight = Flight(job, body, time.monotonic() + LEASE.total_seconds())
        self.roster.add([flight])
        return flight, body

    def counted(self) -> dict[str, int]:
        return {name: count for name, count in self.tally.counts().items() if count}


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(getattr(record, "event", "")) for record in caplog.records]


async def test_outcomes_of_one_moment_are_settled_in_one_call_and_counted():
    rig = Rig(lambda _: Verdict.SETTLED)
    outcomes = [Outcome.OK, Outcome.OK, Outcome.RETRIED, Outcome.DEAD, Outcome.SUSPENDED, Outcome.RETURNED]
    bodies = []
    for number, outcome in enumerate(outcomes):
        flight, body = rig.flight(number)
        bodies.append(body)
        rig.settler.put(flight, settlement(flight.job, outcome))
    assert rig.settler.pending == len(outcomes)
    await rig.settler.drained()
    assert len(rig.calls) == 1
    assert rig.counted() == {"done": 2, "retried": 1, "dead": 1, "suspended": 1, "returned": 1}
    assert len(rig.roster) == 0
    assert [len(body.confirmed) for body in bodies] == [0, 0, 1, 1, 0, 0], "failures are reported when they have landed"
    assert len(rig.landed) == len(outcomes)


async def test_a_settlement_is_tried_again_while_the_database_is_away(caplog: pytest.LogCaptureFixture):
    tries = 0

    def answer(_: Settlement) -> Verdict:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise DriverUnavailable("away")
        return Verdict.SETTLED

    rig = Rig(answer)
    flight, _ = rig.flight()
    rig.settler.put(flight, settlement(flight.job))
    await rig.settler.drained()
    assert rig.counted() == {"done": 1}
    assert events(caplog) == ["jobs.database.away"], "one line when it goes; the line of its return is of level info"


async def test_a_settlement_that_never_lands_is_one_loss(caplog: pytest.LogCaptureFixture):
    def answer(_: Settlement) -> Verdict:
        raise DriverUnavailable("away")

    rig = Rig(answer)
    flight, body = rig.flight()
    began = time.monotonic()
    rig.settler.put(flight, settlement(flight.job, Outcome.DEAD))
    await rig.settler.drained()
    assert time.monotonic() - began >= LEASE.total_seconds()
    assert rig.counted() == {"lost": 1}
    assert events(caplog).count("jobs.lease.lost") == 1
    assert body.confirmed == []


@pytest.mark.parametrize(
    ("verdict", "counter", "lines"), [(Verdict.LOST, "lost", 1), (Verdict.CANCELLED, "cancelled", 0)]
)
async def test_a_verdict_decides_what_is_counted(
    caplog: pytest.LogCaptureFixture, verdict: Verdict, counter: str, lines: int
):
    rig = Rig(lambda _: verdict)
    flight, _ = rig.flight()
    rig.settler.put(flight, settlement(flight.job, Outcome.DEAD))
    await rig.settler.drained()
    assert rig.counted() == {counter: 1}
    assert [str(outcome) for _, outcome in rig.ended] == [counter]
    assert events(caplog).count("jobs.lease.lost") == lines
    assert rig.landed == []


@pytest.mark.parametrize("phase", [Phase.LOST, Phase.CANCELLED])
async def test_nothing_is_written_for_a_claim_that_is_lost_or_cancelled(phase: Phase):
    rig = Rig(lambda _: Verdict.SETTLED)
    flight, _ = rig.flight()
    assert rig.roster.move(flight, phase)
    rig.settler.put(flight, settlement(flight.job))
    await rig.settler.drained()
    assert rig.calls == []
    assert [outcome.name for _, outcome in rig.ended] == [phase.name]
    assert rig.counted() == {}
    assert len(rig.roster) == 0


async def test_a_text_that_the_database_refuses_costs_the_text_and_not_the_outcome(caplog: pytest.LogCaptureFixture):
    def answer(each: Settlement) -> Verdict:
        if each.error is not None and "bad" in each.error:
            raise ValueError("this text cannot be stored")
        return Verdict.SETTLED

    rig = Rig(answer)
    flights = [rig.flight(number)[0] for number in range(4)]
    for number, flight in enumerate(flights):
        rig.settler.put(flight, settlement(flight.job, Outcome.DEAD, error="bad" if number == 2 else "good"))
    await rig.settler.drained()
    assert rig.counted() == {"dead": 4}
    assert events(caplog) == ["jobs.worker.settle-failed"]
    (last,) = [each for each in rig.calls[-1] if each.lease_no == 2]
    assert last.error == "The text of the error could not be stored."


async def test_the_backlog_is_waited_for():
    gate = asyncio.Event()
    rig = Rig(lambda _: Verdict.SETTLED)
    settle = rig.settle

    async def slow(batch: Sequence[Settlement]) -> list[Verdict]:
        await gate.wait()
        return await settle(batch)

    rig.settler._coalescer._send = slow
    for number in range(3):
        flight, _ = rig.flight(number)
        rig.settler.put(flight, settlement(flight.job))
    waiting = asyncio.create_task(rig.settler.below(3))
    await eventually(lambda: rig.settler.pending == 3)
    assert not waiting.done()
    gate.set()
    await asyncio.wait_for(waiting, 2)
    assert rig.settler.pending == 0
