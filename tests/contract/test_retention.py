"""Retention: what is over its time goes, with all that belongs to it, in bounded batches; nothing goes earlier."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    bring_to,
    end,
    job,
    put,
    put_and_take,
    record,
    retry,
    row,
    step,
    step_names,
    stop,
    take_one,
)
from ultijobs import Retention
from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.events import NewEvent
from ultijobs._queue.outbox import OutboxState, Published
from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.retention import Kept, Shelf, Windows
from ultijobs._queue.schedule import Arming, Dispatch, SlotOutcome
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retention.sweeping import sweep

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
DEFAULT = Retention()
ENDED = {JobState.DONE: 7, JobState.CANCELLED: 7, JobState.FAILED: 90, JobState.DEAD: 90}


async def prune(harness: Harness, windows: Windows = DEFAULT) -> dict[Kept, int]:
    return dict(await sweep(harness.driver.retention, windows))


async def exists(harness: Harness, id: UUID) -> bool:
    return await harness.driver.inspect.job(id) is not None


@pytest.mark.parametrize(("state", "days"), ENDED.items(), ids=list(ENDED))
async def test_an_ended_job_is_kept_for_its_time_and_goes_after_it(
    harness: Harness, state: JobState, days: int
) -> None:
    one = await stop(harness, state)
    await harness.advance(days * DAY - SECOND)
    assert await prune(harness) == {}
    assert await exists(harness, one)
    await harness.advance(DAY + 2 * SECOND)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept(state)].value == 1
    assert await prune(harness) == {Kept(state): 1}
    assert not await exists(harness, one)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept(state)].value == 0


@pytest.mark.parametrize("state", list(ENDED))
async def test_the_steps_and_attempts_of_a_run_go_with_its_job_and_not_before(
    harness: Harness, state: JobState
) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed))
    await end(harness, claimed, Outcome.RETRIED)
    again = await take_one(harness)
    if state is JobState.CANCELLED:
        await harness.driver.cancel([again.id])
    else:
        outcome = {JobState.DONE: Outcome.OK, JobState.DEAD: Outcome.DEAD, JobState.FAILED: Outcome.FAILED}[state]
        await end(harness, again, outcome)
    await harness.advance(6 * DAY)
    await prune(harness)
    assert await step_names(harness, claimed.run_id) == ["one"]
    assert await harness.driver.inspect.attempts(claimed.run_id)
    await harness.advance(90 * DAY)
    await prune(harness)
    assert await step_names(harness, claimed.run_id) == []
    assert await harness.driver.inspect.attempts(claimed.run_id) == []


@pytest.mark.parametrize("state", [JobState.READY, JobState.DELAYED, JobState.SUSPENDED, JobState.RUNNING])
async def test_what_lives_is_never_over_its_time(harness: Harness, state: JobState) -> None:
    one = await bring_to(harness, state)
    await harness.advance(1_000 * DAY)
    assert await prune(harness) == {}
    assert await exists(harness, one)


async def test_each_state_has_a_time_of_its_own(harness: Harness) -> None:
    ids = {state: await stop(harness, state) for state in ENDED}
    for short in ENDED:
        windows = Retention(**{str(state): "1d" if state is short else "30d" for state in ENDED})
        await harness.advance(2 * DAY + SECOND)
        assert await prune(harness, windows) == {Kept(short): 1}
        assert not await exists(harness, ids.pop(short))
        for other in ids.values():
            assert await exists(harness, other)


async def test_a_time_of_less_than_a_day_ends_when_it_is_over(harness: Harness) -> None:
    old = await stop(harness, JobState.DONE)
    await harness.advance(61 * SECOND)
    young = await stop(harness, JobState.DONE)
    assert await prune(harness, Retention(done="1m", cancelled="1m")) == {Kept.DONE: 1}
    assert (await exists(harness, old), await exists(harness, young)) == (False, True)


async def test_a_done_job_can_be_retried_until_its_time_is_over(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed))
    await end(harness, claimed)
    await harness.advance(7 * DAY - SECOND)
    await prune(harness)
    assert await retry(harness, [claimed.id], allow_done=True) == [(True, None)]
    await harness.advance(30 * DAY)
    assert await prune(harness) == {}
    assert await step_names(harness, claimed.run_id) == ["one"]
    assert (await row(harness, claimed.id)).state == JobState.READY


async def test_a_batch_is_bounded_and_the_next_goes_on_behind_it(harness: Harness) -> None:
    for _ in range(5):
        await stop(harness, JobState.DEAD)
    await harness.advance(91 * DAY)
    batches: list[int] = []
    after: str | None = None
    while True:
        told = await harness.driver.retention.forget(Shelf.STOPPED, DEFAULT, after=after, limit=2)
        batches.append(told.rows.get(Kept.DEAD, 0))
        after = told.after
        if after is None:
            break
    assert max(batches) <= 2
    assert sum(batches) == 5


async def test_the_key_of_a_job_that_is_gone_is_free(harness: Harness) -> None:
    await put(harness, idempotency_key="k")
    await end(harness, await take_one(harness), Outcome.DEAD)
    await harness.advance(91 * DAY)
    await prune(harness)
    assert await put(harness, idempotency_key="k")


async def test_events_are_kept_until_they_expire(harness: Harness) -> None:
    for ttl in (DAY, 3 * DAY):
        await harness.driver.events.publish([NewEvent(new_id(), "paid", "null", ttl=ttl)])
    await harness.advance(2 * DAY)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept.EVENTS].value == 1
    assert await prune(harness) == {Kept.EVENTS: 1}
    (left,) = (await harness.driver.events.page()).rows
    assert left.expires_at > await harness.driver.inspect.now()


async def test_of_the_outbox_only_what_is_published_goes(harness: Harness) -> None:
    outbox = harness.driver.outbox
    for _ in range(2):
        async with harness.driver.transaction() as tx:
            await outbox.stage([job()], tx=tx)
    (sent,) = await outbox.claim("relay", limit=1, lease=SECOND)
    await outbox.mark([Published(sent.job.id, sent.claim_no, sent.job.id)])
    await harness.advance(DAY + SECOND)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept.OUTBOX].value == 1
    assert await prune(harness) == {Kept.OUTBOX: 1}
    assert [found.state for found in (await outbox.rows()).rows] == [OutboxState.STAGED]


async def test_a_decided_slot_keeps_its_identity_for_the_whole_time(harness: Harness) -> None:
    schedule = harness.driver.schedule
    term = (await schedule.lead("a", lease=1_000 * DAY)).term
    await schedule.arm("a", term, [Arming("nightly", "0 3 * * *", "UTC")])
    now = await harness.driver.inspect.now()
    slot = Dispatch("nightly", now, SlotOutcome.FIRED, (job(),), now)
    await schedule.dispatch("a", term, slot)
    await end(harness, await take_one(harness))
    await harness.advance(179 * DAY)
    assert await prune(harness) == {Kept.DONE: 1}
    again = await schedule.dispatch("a", term, replace(slot, jobs=(job(),)))
    assert again is not None
    assert not again.fresh
    await harness.advance(2 * DAY)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept.SCHEDULE].value == 1
    assert await prune(harness) == {Kept.SCHEDULE: 1}
    assert await schedule.slots() == []


async def test_the_activity_log_is_kept_for_its_time(harness: Harness) -> None:
    for _ in range(2):
        await harness.driver.open_activity(ActivityEntry("ana", "cli", "pause", "queue default"))
        await harness.advance(100 * DAY)
    assert (await harness.driver.retention.expired(DEFAULT))[Kept.ACTIVITY].value == 1
    assert await prune(harness) == {Kept.ACTIVITY: 1}
    assert len(await harness.driver.inspect.activity()) == 1


async def test_counts_stop_at_their_cap_and_say_so(harness: Harness) -> None:
    for _ in range(3):
        await stop(harness, JobState.DEAD)
    await harness.advance(91 * DAY)
    found = (await harness.driver.retention.expired(DEFAULT, cap=2))[Kept.DEAD]
    assert (found.value, found.kind) == (2, "capped")


async def test_a_declaration_is_seen_when_it_is_published_and_when_it_is_confirmed(harness: Harness) -> None:
    entries = [CatalogEntry("job", "charge", "default", {"retention": {}}, "1", "test")]
    await harness.driver.publish_catalog(entries)
    (published,) = await harness.driver.inspect.catalog()
    assert published.last_seen == await harness.driver.inspect.now()
    await harness.advance(DAY)
    await harness.driver.confirm_catalog(
        [replace(entries[0], declaration={}, code_version="0"), replace(entries[0], name="x")]
    )
    (confirmed,) = await harness.driver.inspect.catalog()
    assert confirmed.last_seen == await harness.driver.inspect.now()
    assert confirmed == published
