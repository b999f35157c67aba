"""Moves: a job is held, received elsewhere whole, and ends here; it is never runnable in two places."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    ask,
    bring_to,
    end,
    job,
    put,
    put_and_take,
    record,
    row,
    step,
    take,
)
from ultijobs._ids import new_id
from ultijobs._queue.events import Look, NewEvent, Sight
from ultijobs._queue.moving import Holding, MovedJob
from ultijobs._queue.records import JobState, NewJob, Outcome, RequeueAsk, UniqueMode
from ultijobs._queue.steps import StepKind, StepStatus
from ultijobs._queue.views import WaitingOn
from ultijobs.memory import MemoryDriver

TO = {"to": "postgresql://there/app", "identity": "0123456789ab"}
SIGN = " [0123456789ab]"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


async def held(harness: Harness, *ids: UUID) -> Holding:
    return await harness.driver.moves.hold(ids, **TO)


async def moved(harness: Harness, *ids: UUID) -> list[MovedJob]:
    """Held, and gone."""
    holding = await held(harness, *ids)
    answers = await harness.driver.moves.depart([job.id for job in holding.jobs], **TO)
    assert all(answer.done for answer in answers)
    return holding.jobs


async def test_a_place_is_the_same_for_every_client(harness: Harness) -> None:
    first = await harness.driver.moves.place()
    assert await (await harness.second()).moves.place() == first
    assert (await MemoryDriver().moves.place()).identity != first.identity


@pytest.mark.parametrize(
    "state", [JobState.READY, JobState.DELAYED, JobState.SUSPENDED, JobState.DEAD, JobState.FAILED]
)
async def test_a_held_job_can_only_be_moved(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state)
    holding = await held(harness, job_id)
    assert [found.id for found in holding.jobs] == [job_id]
    assert holding.refused == []
    await harness.advance(timedelta(days=1))
    assert await take(harness) == []
    (cancelled,) = await harness.driver.cancel([job_id])
    assert cancelled.code == ("X_JOB_MOVED" if state in {"ready", "delayed", "suspended"} else "X_JOB_NOT_CANCELLABLE")
    (retried,) = await harness.driver.requeue(RequeueAsk((job_id,)))
    assert retried.code == ("X_JOB_MOVED" if cancelled.code else None)
    assert (await row(harness, job_id)).cancel_reason == f"moving to postgresql://there/app{SIGN}"


async def test_a_job_that_waits_only_for_its_move_says_so(harness: Harness) -> None:
    job_id = await put(harness)
    await held(harness, job_id)
    found = await row(harness, job_id)
    assert (found.waiting_on, found.behind) == (WaitingOn.BEHIND, job_id)


async def test_holding_again_answers_the_same_and_another_target_is_refused(harness: Harness) -> None:
    job_id = await put(harness)
    first = await held(harness, job_id)
    assert (
        await harness.driver.moves.hold([job_id], to="another spelling", identity=TO["identity"])
    ).jobs == first.jobs
    other = await harness.driver.moves.hold([job_id], to="elsewhere", identity="ffffffffffff")
    assert other.jobs == []
    assert [refusal.code for refusal in other.refused] == ["X_JOB_MOVED"]


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.DONE, JobState.CANCELLED])
async def test_what_runs_or_has_ended_is_refused_and_left_as_it_is(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state)
    before = await row(harness, job_id)
    holding = await held(harness, job_id)
    assert holding.jobs == []
    assert [(refusal.id, refusal.code) for refusal in holding.refused] == [(job_id, "X_JOB_NOT_MOVABLE")]
    assert await row(harness, job_id) == before


async def test_an_id_that_is_not_there_is_nothing(harness: Harness) -> None:
    assert await held(harness, new_id()) == Holding([], [])


async def test_a_job_that_was_let_go_is_claimed_here_again(harness: Harness) -> None:
    job_id = await put(harness)
    await held(harness, job_id)
    await harness.driver.moves.let_go([job_id], identity="ffffffffffff")
    assert await take(harness) == []
    await harness.driver.moves.let_go([job_id], identity=TO["identity"])
    assert [claimed.id for claimed in await take(harness)] == [job_id]


async def test_a_job_that_departed_is_cancelled_with_the_reason_and_never_retried(harness: Harness) -> None:
    job_id = await put(harness, idempotency_key="k")
    await moved(harness, job_id)
    found = await row(harness, job_id)
    assert (found.state, found.error_code) == ("cancelled", "X_JOB_MOVED")
    assert found.cancel_reason == f"moved to postgresql://there/app{SIGN}"
    (retried,) = await harness.driver.requeue(RequeueAsk((job_id,), allow_done=True))
    assert (retried.done, retried.code) == (False, "X_JOB_MOVED")
    stats = await harness.driver.inspect.stats()
    assert stats.totals["cancelled"].value == 1
    assert stats.totals["ready"].value == 0
    # Its key is free again, and departing again is answered the same.
    assert await put(harness, idempotency_key="k") != job_id
    assert [answer.done for answer in await harness.driver.moves.depart([job_id], **TO)] == [True]
    assert await held(harness, job_id) == Holding([], [])


async def test_what_is_not_held_does_not_depart(harness: Harness) -> None:
    job_id = await put(harness)
    (answer,) = await harness.driver.moves.depart([job_id], **TO)
    assert (answer.done, answer.code) == (False, "X_JOB_NOT_MOVABLE")
    assert (await row(harness, job_id)).state == "ready"


async def test_a_job_arrives_with_all_that_belongs_to_it(harness: Harness) -> None:
    claimed = await put_and_take(
        harness,
        idempotency_key="k",
        tenant_id="acme",
        priority=7,
        max_attempts=5,
        enqueued_by='{"kind": "user", "id": "u-3"}',
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        code_version="9f31c0a",
        input='{"b": 1.50, "a": [1,  2]}',
    )
    await record(harness, step(claimed, "load", output='{"x": 1.0}'))
    await end(harness, claimed, Outcome.RETRIED, delay=HOUR, error_code="E_BAD", error="E_BAD: no", fingerprint="f1")
    (job_,) = (await held(harness, claimed.id)).jobs
    assert job_.input == '{"b": 1.50, "a": [1,  2]}'
    assert [(s.name, s.output) for s in job_.steps] == [("load", '{"x": 1.0}')]
    assert [a.outcome for a in job_.attempts] == ["retried"]
    there = MemoryDriver()
    assert [answer.done for answer in await there.moves.receive([job_])] == [True]
    assert (await there.moves.present([job_.id]))[job_.id] == job_
    before, after = await row(harness, claimed.id), await there.inspect.job(claimed.id)
    assert after is not None
    same = ("run_id", "name", "queue", "attempt", "max_attempts", "priority", "tenant_id", "run_at", "traceparent")
    same += ("enqueued_by", "code_version", "last_error", "error_code", "fingerprint", "created_at", "due_at")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]


async def received(harness: Harness, *jobs: NewJob) -> list[MovedJob]:
    """Jobs of another store, here."""
    there = MemoryDriver()
    await there.enqueue(jobs)
    holding = await there.moves.hold([each.id for each in jobs], **TO)
    answers = await harness.driver.moves.receive(holding.jobs)
    assert all(answer.done for answer in answers)
    await harness.advance(timedelta(minutes=1))
    return holding.jobs


async def test_a_job_that_is_here_already_is_not_stored_again(harness: Harness) -> None:
    jobs = await received(harness, job(idempotency_key="k"))
    (claimed,) = await take(harness)
    assert [answer.done for answer in await harness.driver.moves.receive(jobs)] == [True]
    assert (await row(harness, claimed.id)).state == "running"
    await end(harness, claimed)
    assert [answer.done for answer in await harness.driver.moves.receive(jobs)] == [True]
    assert (await row(harness, claimed.id)).state == "done"
    assert await take(harness) == []


async def test_what_arrives_is_whole_and_claimed_with_a_higher_lease_number(harness: Harness) -> None:
    (sent,) = await received(harness, job(idempotency_key="k", input='{"n": 1}'))
    assert (await harness.driver.moves.present([sent.id]))[sent.id] == sent
    again = replace(sent, id=new_id(), run_id=new_id(), lease_no=5_000_000_000, idempotency_key="k2")
    assert [answer.done for answer in await harness.driver.moves.receive([again])] == [True]
    await harness.advance(timedelta(minutes=1))
    claimed = {each.id: each for each in await harness.driver.claim(ask())}
    assert claimed[again.id].lease_no > 5_000_000_000
    assert claimed[sent.id].input == '{"n": 1}'


async def test_a_key_that_is_held_there_refuses_the_job(harness: Harness) -> None:
    holder = await put(harness, idempotency_key="k")
    there = MemoryDriver()
    (other,) = await there.enqueue([job(idempotency_key="k")])
    holding = await there.moves.hold([other.id], **TO)
    (answer,) = await harness.driver.moves.receive(holding.jobs)
    assert (answer.done, answer.code) == (False, "X_JOB_DUPLICATE")
    assert str(holder) in (answer.cause or "")
    assert await harness.driver.moves.present([other.id]) == {}


async def test_a_job_that_went_away_can_come_back(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed, "load"))
    await end(harness, claimed, Outcome.RETRIED)
    (gone,) = await moved(harness, claimed.id)
    later = replace(gone, steps=(replace(gone.steps[0], output="2"),), attempt=2)
    assert [answer.done for answer in await harness.driver.moves.receive([later])] == [True]
    found = await row(harness, claimed.id)
    assert (found.state, found.attempt) == ("ready", 2)
    assert [s.output for s in await harness.driver.inspect.steps(claimed.run_id)] == ["2"]


async def test_one_that_waits_behind_another_moves_with_it(harness: Harness) -> None:
    rerun = {"idempotency_key": "k", "unique": UniqueMode.RERUN}
    first = await put_and_take(harness, **rerun)
    twin = await put(harness, **rerun)
    holding = await held(harness, twin)
    assert holding.jobs == []
    assert {refusal.id for refusal in holding.refused} == {first.id, twin}
    await end(harness, first, Outcome.RETRIED, delay=HOUR)
    for asked in (first.id, twin):
        both = (await held(harness, asked)).jobs
        assert [(each.id, each.behind) for each in both] == [(first.id, None), (twin, first.id)]
    there = MemoryDriver()
    await there.moves.receive(both)
    found = await there.inspect.job(twin)
    assert found is not None
    assert found.behind == first.id
    await harness.driver.moves.depart([first.id, twin], **TO)
    assert (await row(harness, twin)).state == "cancelled"


async def test_a_run_that_waits_finds_there_the_event_that_came_before_it_left(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    waits = step(
        claimed, "paid", kind=StepKind.WAIT, status=StepStatus.WAITING, event="paid", match="i-1", wake_in=HOUR
    )
    await record(harness, waits)
    await end(harness, claimed, Outcome.SUSPENDED, run_at=await harness.driver.inspect.now() + HOUR)
    await harness.driver.events.publish([NewEvent(new_id(), "paid", '{"by": "ann"}', key="i-1")])
    (sent,) = (await held(harness, claimed.id)).jobs
    events = await harness.driver.moves.events(since=sent.created_at)
    assert [(event.name, event.key, event.payload) for event in events] == [("paid", "i-1", '{"by": "ann"}')]
    assert await harness.driver.moves.events(since=sent.created_at, after=events[0].id) == []
    assert await harness.driver.moves.receive_events(events) == 0
    # Back in this store, as if it were another: it goes on with the event.
    await harness.driver.moves.depart([sent.id], **TO)
    await harness.driver.moves.receive([sent])
    (again,) = await take(harness)
    (seen,) = await harness.driver.events.look([Look(again.id, again.run_id, again.lease_no, "paid")])
    assert seen.sight is Sight.EVENT
    assert '"by": "ann"' in (seen.output or "")


async def test_events_that_arrive_wake_who_waits_for_them(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    waits = step(claimed, "paid", kind=StepKind.WAIT, status=StepStatus.WAITING, event="paid", wake_in=HOUR)
    await record(harness, waits)
    await end(harness, claimed, Outcome.SUSPENDED, run_at=await harness.driver.inspect.now() + HOUR)
    there = MemoryDriver()
    await there.events.publish([NewEvent(new_id(), "paid", "1")])
    now = await there.inspect.now()
    assert await harness.driver.moves.receive_events(await there.moves.events(since=now - HOUR)) == 1
    await harness.driver.events.deliver()
    assert [again.id for again in await take(harness)] == [claimed.id]
