"""The lease keeper: what it renews, when it gives a lease up, and that it outlives a blocked loop."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

import pytest

from tests.support.eventually import eventually
from tests.unit.worker.flights import FakeBody, claimed
from ultijobs._execution.ending import Ending
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat, BeatAnswer
from ultijobs._queue.telling import WorkerBeat, WorkerOrder
from ultijobs._service.trouble import Trouble
from ultijobs._worker.fate import Fates
from ultijobs._worker.flight import Flight, Phase, Roster
from ultijobs._worker.keeper import LeaseKeeper
from ultijobs._worker.losses import Losses
from ultijobs._worker.renewal import Renewal, margin_of
from ultijobs._worker.tally import Tally
from ultijobs._worker.watch import LoopWatch
from ultijobs.memory import MemoryDriver

LEASE = timedelta(seconds=0.6)


class FakeLink:
    """Answers by a function; remembers when each renewal was sent."""

    def __init__(self, answer: Callable[[Beat], BeatAnswer]) -> None:
        self.answer = answer
        self.sent: list[tuple[float, list[int]]] = []
        self.opened = self.closed = 0
        self.told: list[WorkerBeat] = []
        self.trouble: BaseException | None = None
        self.hangs = False
        self.answers_after = 0.0

    async def open(self) -> None:
        self.opened += 1

    async def renew(self, beats: Sequence[Beat], lease: timedelta) -> list[BeatAnswer]:
        self.sent.append((time.monotonic(), [beat.lease_no for beat in beats]))
        if self.trouble is not None:
            raise self.trouble
        if self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(self.answers_after)
        return [self.answer(beat) for beat in beats]

    async def beat(self, beat: WorkerBeat) -> WorkerOrder:
        self.told.append(beat)
        return WorkerOrder.NONE

    async def close(self) -> None:
        self.closed += 1


def worker_beat() -> WorkerBeat:
    return WorkerBeat(
        instance=new_id(), worker_id="w", host="h", pid=1, version="0", code_version=None, environment=None,
        queues=("default",), names=("mail",), concurrency=1, state="running", free_slots=0, running=1, loop_lag_ms=0,
        rss_bytes=0, claimed_ago_ms=None, settled_ago_ms=None, counters={},
    )  # fmt: skip


class Rig:
    def __init__(self) -> None:
        self.roster, self.tally = Roster(), Tally()
        self.kept: list[bool] = []
        self.link = FakeLink(lambda _: BeatAnswer.HELD)
        loop = asyncio.get_running_loop()
        self.watch = LoopWatch(self.roster, "w", loop, threading.get_ident())
        losses = Losses(MemoryDriver().telemetry, self.tally, Trouble("w"), "w")
        fates = Fates(self.roster, self.tally, losses, loop)
        self.keeper = LeaseKeeper(
            lambda: self.link, LEASE, self.roster, fates, self.watch, Trouble("w"), "w", worker_beat, self.kept.append
        )

    def flight(self, lease_no: int = 1) -> tuple[Flight, FakeBody]:
        job = claimed(lease_no)
        body = FakeBody(job)
        flight = Flight(job, body, time.monotonic() + LEASE.total_seconds() - margin_of(LEASE))
        self.roster.add([flight])
        return flight, body


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    rig.keeper.start()
    await asyncio.wait_for(rig.keeper.ready(), 5)
    yield rig
    await rig.keeper.stop()


def lost_lines(caplog: pytest.LogCaptureFixture, event: str = "jobs.lease.lost") -> int:
    return sum(getattr(record, "event", "") == event for record in caplog.records)


async def test_all_flights_are_renewed_in_one_call_and_stay_ours(rig: Rig):
    flights = [rig.flight(number) for number in (1, 2, 3)]
    began = time.monotonic()
    await eventually(lambda: time.monotonic() - began > 2 * LEASE.total_seconds())
    assert all(flight.phase is Phase.HELD and flight.ends > time.monotonic() for flight, _ in flights)
    assert not any(body.ends for _, body in flights)
    assert all(sorted(leases) == [1, 2, 3] for _, leases in rig.link.sent)
    assert 4 <= len(rig.link.sent) <= 9


async def test_the_lease_is_measured_from_before_the_renewal_was_sent(rig: Rig):
    rig.link.answers_after = 0.15
    flight, _ = rig.flight()
    first = flight.ends
    await eventually(lambda: flight.ends != first)
    sent = rig.link.sent[0][0]
    assert flight.ends <= sent + LEASE.total_seconds() - margin_of(LEASE) + 0.01


@pytest.mark.parametrize("how", ["refused", "hanging"])
async def test_a_lapsed_window_is_one_loss_and_cancels_before_the_end(
    rig: Rig, caplog: pytest.LogCaptureFixture, how: str
):
    rig.link.trouble = ConnectionResetError("no") if how == "refused" else None
    rig.link.hangs = how == "hanging"
    claimed = time.monotonic()
    flight, body = rig.flight()
    await eventually(lambda: body.ends)
    assert flight.phase is Phase.LOST
    assert body.ends[0][0] is Ending.LOST
    assert body.ends[0][1] - claimed <= LEASE.total_seconds()
    assert body.ends[0][2] == threading.get_ident(), "the body is cancelled on its own loop"
    before = len(rig.link.sent)
    rig.link.trouble, rig.link.hangs = None, False
    await eventually(lambda: time.monotonic() - claimed > 2 * LEASE.total_seconds())
    assert len(body.ends) == 1
    assert lost_lines(caplog) == 1
    assert rig.tally.counts()["lost"] == 1
    assert all(1 not in leases for _, leases in rig.link.sent[before + 2 :]), "a lost claim is not renewed"


async def test_one_failed_renewal_is_a_warning(rig: Rig, caplog: pytest.LogCaptureFixture):
    flight, body = rig.flight()
    rig.link.trouble = ConnectionResetError("reset")
    await eventually(lambda: rig.link.sent)
    rig.link.trouble = None
    landed = len(rig.link.sent) + 3
    await eventually(lambda: len(rig.link.sent) >= landed)
    assert flight.phase is Phase.HELD
    assert not body.ends
    assert lost_lines(caplog, "jobs.heartbeat.failed") == 1
    assert lost_lines(caplog) == 0
    assert rig.link.closed >= 1
    assert rig.link.opened >= 2
    assert rig.kept == [False, True], "nothing is claimed while renewals fail"


@pytest.mark.parametrize(
    ("answer", "phase", "ending", "counter", "lines"),
    [
        (BeatAnswer.LOST, Phase.LOST, Ending.LOST, "lost", 1),
        (BeatAnswer.CANCELLED, Phase.CANCELLED, Ending.CANCELLED, "cancelled", 0),
    ],
)
async def test_what_the_database_answers_ends_the_body_once(
    rig: Rig,
    caplog: pytest.LogCaptureFixture,
    answer: BeatAnswer,
    phase: Phase,
    ending: Ending,
    counter: str,
    lines: int,
):
    rig.link.answer = lambda _: answer
    flight, body = rig.flight()
    rig.keeper.renew_soon()
    await eventually(lambda: body.ends)
    assert flight.phase is phase
    rig.keeper.renew_soon()
    renewals = len(rig.link.sent)
    await eventually(lambda: rig.watch.lag() >= 0 and len(rig.link.sent) >= renewals)
    assert [end[0] for end in body.ends] == [ending]
    assert lost_lines(caplog) == lines
    assert rig.tally.counts()[counter] == 1


async def test_a_flight_that_is_settling_is_renewed_and_never_lost(rig: Rig, caplog: pytest.LogCaptureFixture):
    rig.link.answer = lambda _: BeatAnswer.LOST
    flight, body = rig.flight()
    assert rig.roster.move(flight, Phase.SETTLING)
    await eventually(lambda: len(rig.link.sent) >= 2)
    assert flight.phase is Phase.SETTLING
    assert not body.ends
    assert lost_lines(caplog) == 0


async def test_leases_are_renewed_and_the_blocker_is_named_while_the_loop_is_blocked(
    rig: Rig, caplog: pytest.LogCaptureFixture
):
    flight, body = rig.flight()

    async def blocks() -> None:
        time.sleep(1.6)  # noqa: ASYNC251 - this is what is tested

    body.tasks = [asyncio.create_task(blocks())]
    await body.tasks[0]
    assert flight.phase is Phase.HELD
    assert not body.ends
    assert len(rig.link.sent) >= 5
    assert rig.link.told, "the keeper tells of the worker while the worker cannot"
    lines = [record for record in caplog.records if getattr(record, "event", "") == "jobs.worker.loop-blocked"]
    assert len(lines) == 1
    assert lines[0].fields["job_id"] == flight.job.id  # type: ignore[attr-defined]
    assert "in blocks" in lines[0].fields["stack"]  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert rig.watch.lag() > 1.0


async def test_a_deadline_is_checked_on_the_loop_when_it_is_due(rig: Rig):
    _, body = rig.flight()
    body.due = time.monotonic() + 0.1
    await eventually(lambda: body.checks)
    assert body.checks == 1


async def test_a_body_that_is_given_up_is_not_renewed_and_its_lease_lapses(rig: Rig):
    flight, body = rig.flight()
    body.renewable = False
    await eventually(lambda: flight.phase is Phase.LOST)
    assert rig.link.sent == []


async def test_a_process_with_an_abandoned_body_counts_as_wedged(rig: Rig):
    _, body = rig.flight()
    assert not rig.watch.wedged
    body.abandoned = True
    assert rig.watch.wedged


async def test_stop_ends_the_thread_and_closes_its_connection():
    rig = Rig()
    rig.keeper.start()
    await rig.keeper.ready()
    await rig.keeper.stop()
    assert rig.link.closed == 1
    assert not any(thread.name == "ultijobs-leases" for thread in threading.enumerate())


@pytest.mark.parametrize("turns", range(16))
async def test_a_stop_at_any_moment_of_a_renewal_closes_its_connection(turns: int):
    rig = Rig()
    renewal = Renewal(lambda: rig.link, LEASE, rig.roster, rig.keeper._fates, lambda: None)
    landing = asyncio.create_task(renewal.land(None, lambda: None))
    for _ in range(turns):
        await asyncio.sleep(0)
    landing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await (await landing).close()
    assert rig.link.closed == rig.link.opened


async def test_a_connection_that_falls_silent_gets_a_rival_in_time():
    rig = Rig()
    links: list[FakeLink] = []

    def make() -> FakeLink:
        link = FakeLink(lambda _: BeatAnswer.HELD)
        links.append(link)
        return link

    rig.keeper._renewal._make_link = make
    rig.keeper.start()
    await asyncio.wait_for(rig.keeper.ready(), 5)
    flight, body = rig.flight()
    await eventually(lambda: links[0].sent)
    links[0].hangs = True
    silent = len(links[0].sent)
    await eventually(lambda: len(links) == 2 and len(links[1].sent) >= 3)
    assert flight.phase is Phase.HELD
    assert not body.ends
    assert len(links[0].sent) == silent + 1
    assert links[0].closed == 1
    await rig.keeper.stop()
    assert links[1].closed == 1
