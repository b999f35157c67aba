"""The ledger of backfills: a pass goes on where it was, only its claim writes, completed is final."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import POLICY, end, put, put_and_take, retry, row, take_one
from ultijobs._ids import new_id
from ultijobs._queue.backfills import PassMark, PassRow, PassStart, PassStatus, Surveyed
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.records import JobState, Outcome
from ultijobs.errors import BackfillRunning

NAME = "fill"
KEYED = {"idempotency_key": NAME}
STEP = timedelta(seconds=10)


def start(claimed: ClaimedJob, **fields: Any) -> PassStart:
    return PassStart(
        **{
            "run_id": claimed.run_id,
            "job_id": claimed.id,
            "lease_no": claimed.lease_no,
            "name": claimed.name,
            "checksum": "c1",
            **fields,
        }
    )


def mark(claimed: ClaimedJob, **fields: Any) -> PassMark:
    return PassMark(
        **{
            "run_id": claimed.run_id,
            "job_id": claimed.id,
            "lease_no": claimed.lease_no,
            "cursor": '{"id": 7}',
            "rows": 10,
            "batches": 1,
            **fields,
        }
    )


async def begun(harness: Harness, **fields: Any) -> ClaimedJob:
    """A pass that has begun under the claim of its job."""
    claimed = await put_and_take(harness, NAME, **{**KEYED, **fields})
    assert await harness.driver.backfills.begin(start(claimed)) is not None
    return claimed


async def line(harness: Harness, claimed: ClaimedJob) -> PassRow:
    (found,) = await harness.driver.backfills.passes(run_id=claimed.run_id)
    return found


async def survey(harness: Harness, name: str = NAME) -> Surveyed:
    (found,) = [each for each in await harness.driver.backfills.survey([name]) if each.name == name]
    return found


async def test_a_pass_begins_with_a_line_of_its_own(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    claimed = await put_and_take(harness, NAME, **KEYED)
    told = start(claimed, app_version="v1", environment="staging", forced=True)
    opened = await harness.driver.backfills.begin(told)
    assert opened == PassRow(
        run_id=claimed.run_id,
        job_id=claimed.id,
        name=NAME,
        status="running",
        checksum="c1",
        app_version="v1",
        environment="staging",
        forced=True,
        rows=0,
        batches=0,
        sweep=0,
        remaining=None,
        counted_at=None,
        counted_rows=0,
        cursor=None,
        in_hand=0,
        in_hand_to=None,
        started_at=now,
        resumed_at=now,
        resumed_rows=0,
        updated_at=now,
        completed_at=None,
        job_state="running",
        error_code=None,
        last_error=None,
    )
    assert await line(harness, claimed) == opened


async def test_a_pass_that_was_cut_off_goes_on_where_it_was(harness: Harness) -> None:
    claimed = await begun(harness)
    first = await line(harness, claimed)
    await harness.advance(STEP)
    assert await harness.driver.backfills.mark(mark(claimed, remaining=90))
    await harness.crash(claimed)
    assert await harness.driver.reap([replace(POLICY, name=NAME)])
    assert (await line(harness, claimed)).status == "running"
    await harness.advance(STEP)
    again = await take_one(harness, NAME)
    resumed = await (await harness.second()).backfills.begin(start(again, checksum="c2"))
    assert resumed is not None
    assert (resumed.cursor, resumed.rows, resumed.batches, resumed.checksum) == ('{"id": 7}', 10, 1, "c1")
    assert (resumed.started_at, resumed.resumed_rows) == (first.started_at, 10)
    assert resumed.resumed_at == await harness.driver.inspect.now()
    assert (resumed.remaining, resumed.counted_rows) == (90, 10)
    assert resumed.counted_at == first.started_at + STEP


async def test_who_goes_on_learns_what_was_in_hand_and_between_two_pages_nothing_is(harness: Harness) -> None:
    backfills = harness.driver.backfills
    claimed = await begun(harness)
    assert await backfills.take(start(claimed), 3, '{"id": 3}')
    assert await backfills.mark(mark(claimed))
    assert ((found := await line(harness, claimed)).in_hand, found.in_hand_to) == (0, None)
    assert await backfills.take(start(claimed), 5, '{"id": 12}')
    await harness.crash(claimed)
    assert await harness.driver.reap([replace(POLICY, name=NAME)])
    await harness.advance(STEP)
    again = await take_one(harness, NAME)
    assert not await backfills.take(start(claimed), 1, '{"id": 99}')
    resumed = await backfills.begin(start(again))
    assert resumed is not None
    assert (resumed.rows, resumed.in_hand, resumed.in_hand_to) == (10, 5, '{"id": 12}')
    assert await backfills.mark(mark(again, rows=12, in_hand=3, in_hand_to='{"id": 12}'))
    assert ((found := await line(harness, again)).in_hand, found.in_hand_to) == (3, '{"id": 12}')


async def test_marks_are_totals_so_that_a_repeat_counts_nothing_twice(harness: Harness) -> None:
    claimed = await begun(harness)
    for _ in range(2):
        assert await harness.driver.backfills.mark(mark(claimed, remaining=90))
    assert await harness.driver.backfills.mark(mark(claimed, cursor="null", rows=20, batches=2, sweep=1))
    found = await line(harness, claimed)
    assert (found.rows, found.batches, found.sweep, found.cursor) == (20, 2, 1, "null")
    assert (found.remaining, found.counted_rows) == (90, 10)


@pytest.mark.parametrize("how", ["lapsed", "cancelled", "never held"])
async def test_nothing_is_written_without_the_claim(harness: Harness, how: str) -> None:
    claimed = await begun(harness)
    before = await line(harness, claimed)
    told = start(claimed)
    if how == "lapsed":
        await harness.crash(claimed)
        await harness.driver.reap([replace(POLICY, name=NAME)])
    elif how == "cancelled":
        await harness.driver.cancel([claimed.id])
    else:
        told = replace(told, lease_no=claimed.lease_no + 1_000)
    assert await harness.driver.backfills.begin(told) is None
    assert not await harness.driver.backfills.take(told, 9, "9")
    assert not await harness.driver.backfills.mark(mark(claimed, lease_no=told.lease_no))
    assert not await harness.driver.backfills.end(told, PassStatus.COMPLETED)
    after = await line(harness, claimed)
    assert (after.rows, after.in_hand, after.cursor, after.completed_at) == (before.rows, 0, None, None)


async def test_completed_is_final(harness: Harness) -> None:
    claimed = await begun(harness)
    await harness.driver.backfills.mark(mark(claimed))
    for _ in range(2):
        assert await harness.driver.backfills.end(start(claimed), PassStatus.COMPLETED, remaining=0)
    done = await line(harness, claimed)
    assert (done.status, done.cursor, done.rows, done.remaining) == ("completed", None, 10, 0)
    assert done.completed_at == await harness.driver.inspect.now()
    await harness.advance(STEP)
    assert await harness.driver.backfills.end(start(claimed), PassStatus.FAILED)
    assert await harness.driver.backfills.mark(mark(claimed, rows=99))
    assert await harness.driver.backfills.begin(start(claimed)) == done
    assert await line(harness, claimed) == done
    await end(harness, claimed, Outcome.DEAD)
    assert (await line(harness, claimed)).status == "completed"


async def test_a_failed_pass_keeps_its_cursor_and_runs_again_when_its_job_does(harness: Harness) -> None:
    claimed = await begun(harness)
    await harness.driver.backfills.mark(mark(claimed))
    assert await harness.driver.backfills.end(start(claimed), PassStatus.FAILED)
    await end(harness, claimed, Outcome.DEAD, error="X_BROKEN: no")
    failed = await line(harness, claimed)
    assert (failed.status, failed.cursor, failed.completed_at) == ("failed", '{"id": 7}', None)
    assert (failed.job_state, failed.error_code, failed.last_error) == ("dead", "X_BROKEN", "X_BROKEN: no")
    assert await retry(harness, [claimed.id]) == [(True, None)]
    assert (await line(harness, claimed)).status == "running"
    resumed = await harness.driver.backfills.begin(start(await take_one(harness, NAME)))
    assert resumed is not None
    assert (resumed.status, resumed.cursor, resumed.rows) == ("running", '{"id": 7}', 10)


@pytest.mark.parametrize(
    ("state", "status"), [(JobState.CANCELLED, "cancelled"), (JobState.DEAD, "failed"), (JobState.DONE, "failed")]
)
async def test_a_pass_whose_job_has_ended_without_a_word_is_not_running(
    harness: Harness, state: JobState, status: str
) -> None:
    claimed = await begun(harness)
    assert await harness.driver.backfills.reconcile() == 0
    if state is JobState.CANCELLED:
        await harness.driver.cancel([claimed.id])
    else:
        await end(harness, claimed, Outcome.DEAD if state is JobState.DEAD else Outcome.OK)
    assert (await line(harness, claimed)).status == status
    assert [found.status for found in await harness.driver.backfills.passes(statuses=[PassStatus.RUNNING])] == []
    before = await line(harness, claimed)
    assert (await survey(harness)).newest == before
    await harness.advance(STEP)
    assert await harness.driver.backfills.reconcile() == 1
    assert await line(harness, claimed) == before
    assert await harness.driver.backfills.reconcile() == 0
    assert (await line(harness, claimed)).status == status


async def test_a_pass_whose_worker_vanished_for_the_last_time_is_not_running(harness: Harness) -> None:
    claimed = await begun(harness, max_attempts=1)
    await harness.crash(claimed)
    await harness.driver.reap([replace(POLICY, name=NAME)])
    assert (await row(harness, claimed.id)).state == "dead"
    assert (await line(harness, claimed)).status == "failed"


async def test_the_ledger_is_newest_first_and_can_be_narrowed(harness: Harness) -> None:
    claims = []
    for _ in range(3):
        claimed = await begun(harness)
        await harness.driver.backfills.end(start(claimed), PassStatus.COMPLETED)
        await end(harness, claimed)
        claims.append(claimed)
        await harness.advance(STEP)
    other = await put_and_take(harness, "other", idempotency_key="other")
    await harness.driver.backfills.begin(start(other))
    store = harness.driver.backfills
    assert [found.run_id for found in await store.passes(name=NAME, limit=2)] == [c.run_id for c in claims[:0:-1]]
    assert [found.name for found in await store.passes()] == ["other", NAME, NAME, NAME]
    assert [found.name for found in await store.passes(statuses=[PassStatus.RUNNING])] == ["other"]
    assert await store.passes(run_id=new_id()) == []
    newest = await store.completed(NAME)
    assert newest is not None
    assert newest.run_id == claims[-1].run_id
    assert await store.completed("other") is None


async def test_of_two_jobs_of_one_name_one_goes_over_the_rows_whatever_tenant_they_were_enqueued_for(
    harness: Harness,
) -> None:
    store = harness.driver.backfills
    assert await store.live(NAME) is None
    one = await put_and_take(harness, NAME, tenant_id="acme", **KEYED)
    two = await put_and_take(harness, NAME, tenant_id="globex", **KEYED)
    live = await store.live(NAME)
    assert live is not None
    assert (live.id, live.run_id, live.deduped, live.state) == (one.id, one.run_id, True, "running")
    answers = await asyncio.gather(store.begin(start(one)), store.begin(start(two)), return_exceptions=True)
    (refused,) = [answer for answer in answers if isinstance(answer, BackfillRunning)]
    first, late = (one, two) if refused is answers[1] else (two, one)
    assert refused.meta["job_id"] == str(first.id)
    assert [row.job_id for row in await store.passes(name=NAME)] == [first.id]
    # It waits to be tried again, which is not its end.
    await store.end(start(first), PassStatus.FAILED)
    await end(harness, first, Outcome.RETRIED, delay=STEP)
    with pytest.raises(BackfillRunning):
        await store.begin(start(late))
    await harness.driver.cancel([first.id])
    opened = await store.begin(start(late))
    assert opened is not None
    assert await store.begin(start(late)) is not None


async def test_a_survey_has_the_newest_pass_the_completed_one_and_the_live_job(harness: Harness) -> None:
    assert await survey(harness) == Surveyed(NAME, None, None, None, None)
    queued = await put(harness, NAME, delay=STEP, **KEYED)
    found = await survey(harness)
    assert (found.newest, found.live_job, found.live_state) == (None, queued, "delayed")
    await harness.advance(STEP)
    first = await take_one(harness, NAME)
    await harness.driver.backfills.begin(start(first))
    assert (await survey(harness)).live_state == "running"
    await harness.driver.backfills.end(start(first), PassStatus.COMPLETED)
    await end(harness, first)
    await harness.advance(STEP)
    second = await begun(harness)
    found = await survey(harness)
    assert found.newest is not None
    assert found.completed is not None
    assert (found.newest.run_id, found.completed.run_id) == (second.run_id, first.run_id)
    assert found.live_job == second.id
    everything = await harness.driver.backfills.survey(["a", "zebra"])
    assert [each.name for each in everything] == ["a", NAME, "zebra"]
