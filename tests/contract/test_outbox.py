"""The staged outbox: rows commit with their transaction, go out in order, once, and a failing one holds up no other."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import SECOND, end, job, put, take_one
from ultijobs._ids import new_id
from ultijobs._queue.events import NewEvent
from ultijobs._queue.outbox import OutboxState, Published, Staged, StagedEvent, StagedJob, Unsent
from ultijobs._queue.records import JobState, NewJob, Outcome, UniqueMode
from ultijobs._queue.where import ANY
from ultijobs.errors import Invariant, OutboxMisplaced
from ultijobs.inspection import Inspector

LEASE = timedelta(seconds=30)


class RollBack(Exception):
    pass


async def stage(harness: Harness, *keys: str, **fields: Any) -> list[UUID]:
    """One row for each key, in one transaction."""
    async with harness.driver.transaction() as tx:
        answers = await harness.driver.outbox.stage([job(idempotency_key=key, **fields) for key in keys], tx=tx)
    return [answer.id for answer in answers]


async def claim_all(harness: Harness, limit: int = 100, claimant: str = "r-1") -> list[Staged]:
    return await harness.driver.outbox.claim(claimant, limit=limit, lease=LEASE)


async def claim(harness: Harness, limit: int = 100, claimant: str = "r-1") -> list[StagedJob]:
    """Where only jobs are staged."""
    rows = await claim_all(harness, limit, claimant)
    jobs = [row for row in rows if isinstance(row, StagedJob)]
    assert len(jobs) == len(rows)
    return jobs


def published(rows: Sequence[StagedJob]) -> list[Published]:
    return [Published(row.job.id, row.claim_no, row.job.id) for row in rows]


def unsent(row: StagedJob, retry_in: timedelta | None = SECOND) -> Unsent:
    return Unsent(row.job.id, row.claim_no, "no", retry_in)


def keys(rows: Sequence[StagedJob]) -> list[str | None]:
    return [row.job.idempotency_key for row in rows]


async def states(harness: Harness) -> dict[UUID, str]:
    return {row.id: row.state for row in (await harness.driver.outbox.rows()).rows}


async def test_a_staged_row_is_there_at_the_commit_and_never_in_the_queue_before_it_is_published(
    harness: Harness,
) -> None:
    async with harness.driver.transaction() as tx:
        (answer,) = await harness.driver.outbox.stage([job()], tx=tx)
        assert (answer.id, answer.deduped, answer.state) == (answer.run_id, False, JobState.READY)
        assert await claim(harness) == []
    (row,) = await claim(harness)
    assert row.job.id == answer.id
    assert (await harness.driver.inspect.jobs(ANY)).rows == []


async def test_a_rolled_back_row_never_was(harness: Harness) -> None:
    with contextlib.suppress(RollBack):
        async with harness.driver.transaction() as tx:
            await harness.driver.outbox.stage([job()], tx=tx)
            raise RollBack
    assert await claim(harness) == []
    assert await states(harness) == {}


async def test_staging_needs_a_transaction(harness: Harness) -> None:
    with pytest.raises(Invariant):
        await harness.driver.outbox.stage([job()], tx=object())


async def test_what_is_meant_for_another_outbox_is_refused_and_the_transaction_goes_on(harness: Harness) -> None:
    outbox = harness.driver.outbox
    here, event = await outbox.identity(), NewEvent(new_id(), "paid", "1")
    assert here == await outbox.identity()
    async with harness.driver.transaction() as tx:
        with pytest.raises(OutboxMisplaced):
            await outbox.stage([job()], tx=tx, expected="elsewhere")
        with pytest.raises(OutboxMisplaced):
            await outbox.stage_events([event], tx=tx, expected="elsewhere")
        (kept,) = await outbox.stage([job()], tx=tx, expected=here)
        await outbox.stage_events([event], tx=tx, expected=here)
    assert {row.id for row in await claim_all(harness)} == {kept.id, event.id}


@pytest.mark.parametrize(
    "when", [{}, {"delay": timedelta(hours=1)}, {"run_at": datetime(2100, 1, 1, tzinfo=UTC)}], ids=["now", "in", "at"]
)
async def test_a_claimed_row_is_what_was_staged(harness: Harness, when: dict[str, Any]) -> None:
    given = NewJob(
        id=new_id(),
        name="charge",
        input='{"a": 1}',
        queue="bulk",
        idempotency_key="k",
        tenant_id="t",
        max_attempts=7,
        priority=3,
        lane="n:charge",
        unique=UniqueMode.RERUN,
        **when,
        enqueued_by="user:7",
        traceparent="00-1-2-01",
        code_version="v1",
    )
    async with harness.driver.transaction() as tx:
        (answer,) = await harness.driver.outbox.stage([given], tx=tx)
    assert answer.state is (JobState.DELAYED if when else JobState.READY)
    (row,) = await claim(harness)
    assert row.job == given


async def test_a_claimed_event_is_what_was_staged_and_is_no_event_of_the_store(harness: Harness) -> None:
    whole = NewEvent(new_id(), "paid", '{"a": [1, "ü"]}', "o-1", timedelta(days=2, seconds=1.5), "user:7")
    bare = NewEvent(new_id(), "paid", "null")
    async with harness.driver.transaction() as tx:
        await harness.driver.outbox.stage_events([whole, bare], tx=tx)
        assert await claim_all(harness) == []
    rows = await claim_all(harness)
    assert [row.event for row in rows if isinstance(row, StagedEvent)] == [whole, bare]
    assert (await harness.driver.events.page()).rows == []
    assert await harness.driver.outbox.mark([Published(row.id, row.claim_no, None) for row in rows]) == [
        whole.id,
        bare.id,
    ]
    shown = (await harness.driver.outbox.rows()).rows
    assert [(row.kind, row.name, row.queue, row.state, row.job_id) for row in shown] == [
        ("event", "paid", None, "published", None)
    ] * 2


async def test_a_rolled_back_event_never_was(harness: Harness) -> None:
    with contextlib.suppress(RollBack):
        async with harness.driver.transaction() as tx:
            await harness.driver.outbox.stage_events([NewEvent(new_id(), "paid", "1")], tx=tx)
            raise RollBack
    assert await states(harness) == {}
    with pytest.raises(Invariant):
        await harness.driver.outbox.stage_events([NewEvent(new_id(), "paid", "1")], tx=object())


async def test_jobs_and_events_of_a_transaction_go_out_in_one_order_and_are_set_aside_together(
    harness: Harness,
) -> None:
    outbox = harness.driver.outbox
    events = [NewEvent(new_id(), "paid", str(number)) for number in range(2)]
    async with harness.driver.transaction() as tx:
        (first,) = await outbox.stage([job(idempotency_key="a")], tx=tx)
        await outbox.stage_events(events[:1], tx=tx)
        (second,) = await outbox.stage([job(idempotency_key="b")], tx=tx)
        await outbox.stage_events(events[1:], tx=tx)
    order = [first.id, events[0].id, second.id, events[1].id]
    rows = await claim_all(harness)
    assert [row.id for row in rows] == order
    assert len({row.tx for row in rows}) == 1
    assert await outbox.fail([Unsent(rows[1].id, rows[1].claim_no, "no", None)]) == order[1:]
    assert set((await states(harness)).values()) == {"staged", "set-aside"}
    assert {answer.id for answer in await outbox.retry([events[0].id])} == set(order[1:])
    await outbox.release(rows[:1])
    assert [row.id for row in await claim_all(harness, claimant="r-2")] == order


async def test_an_event_that_is_published_again_is_one(harness: Harness) -> None:
    event = NewEvent(new_id(), "paid", "1")
    for _ in range(2):
        await harness.driver.events.publish([event])
    assert [row.id for row in (await harness.driver.events.page()).rows] == [event.id]


async def test_what_is_left_of_a_delay_counts_from_the_staging(harness: Harness) -> None:
    await stage(harness, "a", delay=timedelta(minutes=10))
    await harness.advance(timedelta(minutes=4))
    (row,) = await claim(harness)
    assert row.job.delay == timedelta(minutes=6)
    await harness.driver.outbox.release([row])
    await harness.advance(timedelta(hours=1))
    (row,) = await claim(harness)
    assert row.job.delay == timedelta(0)


async def test_a_key_that_is_given_twice_in_one_call_is_one_row(harness: Harness) -> None:
    async with harness.driver.transaction() as tx:
        first, second = await harness.driver.outbox.stage([job(idempotency_key="k"), job(idempotency_key="k")], tx=tx)
    assert (second.id, second.deduped) == (first.id, True)
    assert keys(await claim(harness)) == ["k"]


async def test_rows_go_out_in_the_order_of_their_transactions(harness: Harness) -> None:
    async with harness.driver.transaction() as early:
        await harness.driver.outbox.stage([job(idempotency_key="early-1")], tx=early)
        async with harness.driver.transaction() as late:
            await harness.driver.outbox.stage([job(idempotency_key="late-1")], tx=late)
            await harness.driver.outbox.stage([job(idempotency_key="early-2")], tx=early)
            await harness.driver.outbox.stage([job(idempotency_key="late-2")], tx=late)
    assert keys(await claim(harness)) == ["early-1", "early-2", "late-1", "late-2"]


async def test_a_transaction_that_commits_late_is_not_skipped(harness: Harness) -> None:
    async with harness.driver.transaction() as slow:
        await harness.driver.outbox.stage([job(idempotency_key="slow")], tx=slow)
        await stage(harness, "quick")
        rows = await claim(harness)
        assert keys(rows) == ["quick"]
        await harness.driver.outbox.mark(published(rows))
    assert keys(await claim(harness)) == ["slow"]


async def test_of_one_transaction_only_one_claimant_holds_rows(harness: Harness) -> None:
    await stage(harness, "a", "b", "c")
    await stage(harness, "other")
    first = await claim(harness, 2)
    assert keys(first) == ["a", "b"]
    assert keys(await claim(harness, claimant="r-2")) == ["other"]
    await harness.driver.outbox.mark(published(first[:1]))
    assert await claim(harness, claimant="r-2") == []
    await harness.driver.outbox.mark(published(first[1:]))
    assert keys(await claim(harness, claimant="r-2")) == ["c"]


async def test_a_claim_that_lapsed_is_another_s_and_its_late_word_changes_nothing(harness: Harness) -> None:
    await stage(harness, "a")
    (old,) = await claim(harness)
    assert await claim(harness, claimant="r-2") == []
    await harness.advance(LEASE + SECOND)
    (new,) = await claim(harness, claimant="r-2")
    outbox = harness.driver.outbox
    assert await outbox.mark(published([old])) == []
    assert await outbox.fail([unsent(old, None)]) == []
    await outbox.release([old])
    assert await claim(harness, claimant="r-3") == []
    assert await outbox.mark(published([new])) == [new.job.id]


async def test_a_released_row_can_be_claimed_at_once_at_no_cost(harness: Harness) -> None:
    await stage(harness, "a")
    await harness.driver.outbox.release(await claim(harness))
    (again,) = await claim(harness, claimant="r-2")
    assert again.attempts == 0


async def test_a_failed_row_waits_and_holds_back_only_the_later_rows_of_its_transaction(harness: Harness) -> None:
    await stage(harness, "fine", "bad", "later")
    await stage(harness, "other")
    fine, bad, later, other = await claim(harness)
    outbox = harness.driver.outbox
    await outbox.mark(published([fine, other]))
    assert await outbox.fail([unsent(bad)]) == []
    await outbox.release([later])
    assert await claim(harness) == []
    await harness.advance(SECOND)
    rows = await claim(harness)
    assert keys(rows) == ["bad", "later"]
    assert [row.attempts for row in rows] == [1, 0]


async def test_what_is_set_aside_takes_only_the_later_rows_of_its_transaction_along(harness: Harness) -> None:
    ids = await stage(harness, "fine", "bad", "later")
    (free,) = await stage(harness, "other")
    rows = await claim(harness)
    outbox = harness.driver.outbox
    assert await outbox.fail([unsent(rows[1], None)]) == [ids[1], ids[2]]
    await outbox.release([rows[0], rows[3]])
    assert await states(harness) == {
        ids[0]: "staged",
        ids[1]: "set-aside",
        ids[2]: "set-aside",
        free: "staged",
    }
    assert keys(await claim(harness)) == ["fine", "other"]
    depth = await outbox.depth()
    assert (depth.staged.value, depth.set_aside.value) == (2, 2)


async def test_a_retry_stages_a_row_again_with_all_that_was_set_aside_with_it(harness: Harness) -> None:
    first, second = await stage(harness, "bad", "later")
    (waiting,) = await stage(harness, "other")
    outbox = harness.driver.outbox
    await outbox.fail([unsent((await claim(harness))[0], None)])
    unknown = new_id()
    answers = await outbox.retry([first, waiting, unknown])
    assert {answer.id: (answer.done, answer.code) for answer in answers} == {
        first: (True, None),
        second: (True, None),
        waiting: (False, "X_JOB_NOT_RETRYABLE"),
        unknown: (False, "X_JOB_UNKNOWN"),
    }
    await harness.advance(LEASE + SECOND)
    rows = await claim(harness)
    assert keys(rows) == ["bad", "later", "other"]
    assert [row.attempts for row in rows] == [0, 0, 0]


async def test_rows_are_told_newest_first_page_by_page(harness: Harness) -> None:
    ids = await stage(harness, "a", "b", "c")
    rows = await claim(harness)
    outbox = harness.driver.outbox
    await outbox.mark([Published(rows[0].job.id, rows[0].claim_no, ids[0])])
    page = await outbox.rows(limit=2)
    assert [row.id for row in page.rows] == [ids[2], ids[1]]
    rest = await outbox.rows(after=page.next, limit=2)
    assert [(row.id, row.state, row.job_id) for row in rest.rows] == [(ids[0], "published", ids[0])]
    assert rest.next is None
    assert [row.id for row in (await outbox.rows([OutboxState.PUBLISHED])).rows] == [ids[0]]
    assert [row.claimed_by for row in page.rows] == ["r-1", "r-1"]


async def test_a_row_is_found_by_the_end_of_its_id(harness: Harness) -> None:
    first, second = await stage(harness, "a", "b")
    outbox = harness.driver.outbox
    assert await outbox.resolve(first.hex[-8:]) == [first]
    assert await outbox.resolve(str(second)) == [second]
    assert await outbox.resolve("ffffff") == []
    assert set(await outbox.resolve(first.hex[-1:], limit=1)) <= {first, second}


async def test_another_tenant_s_row_is_unknown(harness: Harness) -> None:
    (ours,) = await stage(harness, "a", tenant_id="acme")
    outbox = harness.driver.outbox
    await outbox.fail([unsent((await claim(harness))[0], None)])
    for tenant, found in (("acme", [ours]), ("globex", []), (None, [ours])):
        assert await outbox.resolve(ours.hex[-8:], tenant=tenant) == found
        assert [row.id for row in (await outbox.rows(tenant=tenant)).rows] == found
    refused = await outbox.retry([ours], tenant="globex")
    assert [(answer.done, answer.code) for answer in refused] == [(False, "X_JOB_UNKNOWN")]
    assert await states(harness) == {ours: "set-aside"}
    assert [answer.done for answer in await outbox.retry([ours], tenant="acme")] == [True]


async def test_published_rows_are_forgotten_by_age_and_no_others(harness: Harness) -> None:
    ids = await stage(harness, "a", "b", "c")
    rows = await claim(harness)
    outbox = harness.driver.outbox
    await outbox.mark(published(rows[:2]))
    await harness.advance(timedelta(days=2))
    assert await outbox.forget(timedelta(days=3)) == 0
    assert await outbox.forget(timedelta(days=1), limit=1) == 1
    assert await outbox.forget(timedelta(days=1)) == 1
    assert list(await states(harness)) == [ids[2]]


@pytest.mark.parametrize("outcome", [None, Outcome.OK, Outcome.DEAD])
async def test_a_job_that_is_enqueued_again_is_not_stored_twice_whatever_became_of_it(
    harness: Harness, outcome: Outcome | None
) -> None:
    given = job(idempotency_key="k")
    (first,) = await harness.driver.enqueue([given], again=True)
    assert (first.id, first.deduped) == (given.id, False)
    if outcome is not None:
        await end(harness, await take_one(harness), outcome)
    (again,) = await harness.driver.enqueue([given], again=True)
    assert (again.id, again.deduped) == (given.id, True)
    assert again.state == {None: "ready", Outcome.OK: "done", Outcome.DEAD: "dead"}[outcome]
    assert len((await harness.driver.inspect.jobs(ANY)).rows) == 1


async def test_a_job_that_is_enqueued_again_still_dedupes_by_its_key(harness: Harness) -> None:
    holder = await put(harness, idempotency_key="k")
    (answer,) = await harness.driver.enqueue([job(idempotency_key="k")], again=True)
    assert (answer.id, answer.deduped) == (holder, True)


async def test_the_counts_of_the_whole_store_tell_the_backlog_and_those_of_a_part_do_not(harness: Harness) -> None:
    reads = harness.driver.inspect
    (first, *_) = await stage(harness, "a", "b", "c")
    (claimed, *_) = await claim(harness, 1)
    await harness.driver.outbox.fail([unsent(claimed, None)])
    depth = (await reads.stats()).outbox
    assert depth == await harness.driver.outbox.depth()
    assert depth is not None
    assert claimed.job.id == first
    assert (depth.set_aside.value, depth.oldest_set_aside) == (3, await reads.now())
    assert (depth.staged.value, depth.oldest) == (0, None)
    assert (await reads.stats(queue="q")).outbox is None
    assert (await reads.stats(tenant="acme")).outbox is None


async def test_what_was_set_aside_and_what_waits_for_long_is_stuck(harness: Harness) -> None:
    inspector = Inspector(harness.driver)
    await stage(harness, "a")
    assert (await inspector.overview()).stuck == []
    (claimed,) = await claim(harness)
    since = await harness.driver.inspect.now()
    await harness.driver.outbox.fail([unsent(claimed, None)])
    await harness.advance(SECOND)
    (line,) = (await inspector.overview()).stuck
    assert (line.key, line.kind, line.severity, line.count.value) == ("outbox:set-aside", "outbox", 2, 1)
    assert line.since == since
