"""Claim: who gets what, in which order, and what nobody gets."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.harness import Harness
from tests.contract.moves import LEASE, ask, end, job, put, put_and_take, row, take, take_one
from ultijobs._ids import new_id
from ultijobs._queue.records import Outcome, UniqueMode

MINUTE = timedelta(minutes=1)


async def test_a_claim_carries_the_job_and_marks_the_row(harness: Harness) -> None:
    job_id = await put(
        harness,
        input='{"n": 1}',
        tenant_id="acme",
        priority=2,
        max_attempts=4,
        enqueued_by="alice",
        traceparent="00-ab-cd-01",
        code_version="7",
        unique=UniqueMode.NOT_RUNNING,
    )
    claimed = await take_one(harness, worker="w-9")
    now = await harness.driver.inspect.now()
    assert (claimed.id, claimed.run_id, claimed.name, claimed.queue) == (job_id, job_id, "charge", "default")
    assert (claimed.tenant_id, claimed.priority, claimed.lane) == ("acme", 2, "")
    assert (claimed.attempt, claimed.max_attempts, claimed.claims) == (1, 4, 1)
    assert (claimed.input, claimed.unique) == ('{"n": 1}', UniqueMode.NOT_RUNNING)
    assert (claimed.enqueued_by, claimed.traceparent, claimed.code_version) == ("alice", "00-ab-cd-01", "7")
    assert claimed.lease_no > 0
    assert claimed.run_at == claimed.created_at == claimed.claimed_at == now
    seen = await row(harness, job_id)
    assert (seen.state, seen.attempt, seen.lease_no, seen.worker_id) == ("running", 1, claimed.lease_no, "w-9")
    assert (seen.lease_until, seen.started_at) == (now + LEASE, now)


async def test_the_order_is_priority_then_time_then_id(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    ids = sorted(new_id() for _ in range(6))
    await harness.driver.enqueue(
        [
            job(id=ids[5]),
            job(id=ids[4]),
            job(id=ids[0], run_at=now + MINUTE),
            job(id=ids[1], priority=-1),
            job(id=ids[3], priority=9, run_at=now + MINUTE),
            job(id=ids[2], priority=9),
        ]
    )
    await harness.advance(2 * MINUTE)
    expected = [ids[2], ids[3], ids[4], ids[5], ids[0], ids[1]]
    first = await take(harness, queues={"default": 2})
    rest = await take(harness)
    assert [claimed.id for claimed in first + rest] == expected


async def test_each_queue_gets_its_slots_and_all_of_them_the_limit(harness: Harness) -> None:
    for queue in ("a", "b", "c"):
        await harness.driver.enqueue([job(queue=queue) for _ in range(4)])
    claimed = await take(harness, queues={"b": 3, "a": 2}, limit=4)
    assert sorted(c.queue for c in claimed) == ["a", "b", "b", "b"]
    assert sorted(c.queue for c in await take(harness, queues={"b": 3, "a": 2})) == ["a", "a", "b"]
    assert {c.queue for c in await take(harness, queues={"c": 9})} == {"c"}


async def test_no_slot_no_name_no_claim(harness: Harness) -> None:
    job_id = await put(harness)
    before = await row(harness, job_id)
    assert await take(harness, queues={"default": 0}) == []
    assert await take(harness, limit=0) == []
    assert await harness.driver.claim(ask(queues={"elsewhere": 5})) == []
    assert await row(harness, job_id) == before


async def test_what_this_worker_does_not_know_is_left_untouched(harness: Harness) -> None:
    unknown = [await put(harness, "refund") for _ in range(3)]
    known = await put(harness, "charge")
    before = [await row(harness, job_id) for job_id in unknown]
    assert [claimed.id for claimed in await take(harness, "charge")] == [known]
    assert [await row(harness, job_id) for job_id in unknown] == before
    assert {claimed.id for claimed in await take(harness, "charge", "refund")} == set(unknown)


async def test_a_delayed_job_waits_for_its_time(harness: Harness) -> None:
    job_id = await put(harness, delay=MINUTE)
    await harness.advance(MINUTE - timedelta(microseconds=1))
    assert await take(harness) == []
    await harness.advance(timedelta(microseconds=1))
    assert (await take_one(harness)).id == job_id


async def test_jobs_to_skip_are_skipped(harness: Harness) -> None:
    skipped, taken = await put(harness), await put(harness)
    before = await row(harness, skipped)
    assert [c.id for c in await take(harness, skip=frozenset({skipped}))] == [taken]
    assert await row(harness, skipped) == before
    assert (await take_one(harness)).id == skipped


async def test_a_job_of_a_capped_lane_is_not_claimed_without_a_slot(harness: Harness) -> None:
    capped = await put(harness, lane="n:charge")
    free = await put(harness)
    before = await row(harness, capped)
    assert [claimed.id for claimed in await take(harness)] == [free]
    assert await take(harness) == []
    assert await row(harness, capped) == before


async def test_a_running_job_is_not_claimed_again(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await harness.advance(10 * LEASE)
    assert await take(harness) == []
    assert (await row(harness, claimed.id)).lease_no == claimed.lease_no


async def test_two_clients_never_get_the_same_job(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(10)])
    other = await harness.second()
    first = await take(harness, limit=4)
    second = await other.claim(ask(worker="w-2"))
    ids = [claimed.id for claimed in first + second]
    assert len(first) == 4
    assert len(ids) == len(set(ids)) == 10
    assert {(await row(harness, claimed.id)).worker_id for claimed in second} == {"w-2"}


async def test_a_lease_number_is_never_used_twice(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(3)])
    numbers: list[int] = []
    for _ in range(4):
        claimed = await take(harness)
        assert len(claimed) == 3
        numbers += [c.lease_no for c in claimed]
        await harness.driver.cancel([claimed[0].id])
        for one in claimed[1:]:
            await end(harness, one, Outcome.RETURNED)
        await put(harness)
    assert len(set(numbers)) == len(numbers)


async def test_claims_are_counted_whatever_became_of_them(harness: Harness) -> None:
    await put(harness)
    for nth, outcome in enumerate([Outcome.RETURNED, Outcome.SUSPENDED, Outcome.RETRIED, Outcome.DEAD], start=1):
        claimed = await take_one(harness)
        assert claimed.claims == nth
        await end(harness, claimed, outcome)


async def test_next_due_tells_how_long_to_wait(harness: Harness) -> None:
    async def due(queues: list[str], names: list[str]) -> timedelta | None:
        return await harness.driver.next_due(queues, names)

    assert await due(["default"], ["charge"]) is None
    await put(harness, "refund")
    await put(harness, queue="other")
    assert await due(["default"], ["charge"]) is None
    await put(harness, delay=2 * MINUTE)
    await put(harness, delay=MINUTE)
    wait = await due(["default"], ["charge"])
    assert wait is not None
    assert timedelta(0) < wait <= MINUTE
    await harness.advance(MINUTE)
    assert await due(["default"], ["charge"]) == timedelta(0)
    await take_one(harness)
    wait = await due(["default"], ["charge"])
    assert wait is not None
    assert timedelta(0) < wait <= MINUTE
