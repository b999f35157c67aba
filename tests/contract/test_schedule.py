"""The scheduler's store: one leader at a time, one identity per slot for ever, nothing decided in the future."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import end, job, row, take_one
from ultijobs._queue.records import Outcome
from ultijobs._queue.schedule import Arming, Dispatch, Lapse, SlotOutcome, TaskState
from ultijobs._queue.where import ANY
from ultijobs.errors import Invariant

LEASE = timedelta(seconds=30)
STEP = timedelta(seconds=10)
DIGEST = Arming("digest", "* * * * *", "UTC")


async def lead(harness: Harness, holder: str = "a") -> int:
    """The term of `holder`, who leads now."""
    leader = await harness.driver.schedule.lead(holder, lease=LEASE)
    assert leader.held_by(holder)
    return leader.term


async def armed(harness: Harness) -> tuple[int, datetime]:
    """The term of `a`, who armed the task, and the time at which that was."""
    term = await lead(harness)
    await harness.driver.schedule.arm("a", term, [DIGEST])
    return term, await harness.driver.inspect.now()


def dispatch(occurrence: datetime, *, keys: tuple[str, ...] = ("k",), **fields: Any) -> Dispatch:
    jobs = tuple(job(idempotency_key=f"digest:{occurrence.isoformat()}:{key}", run_at=occurrence) for key in keys)
    return Dispatch(
        **{
            "task": "digest",
            "occurrence": occurrence,
            "outcome": SlotOutcome.FIRED,
            "jobs": jobs,
            "watermark": occurrence,
            **fields,
        }
    )


async def state(harness: Harness, task: str = "digest") -> TaskState:
    (found,) = [each for each in await harness.driver.schedule.states() if each.task == task]
    return found


async def count(harness: Harness) -> int:
    return len((await harness.driver.inspect.jobs(ANY)).rows)


# -- leadership ----------------------------------------------------------------------------------------
async def test_nobody_leads_at_first(harness: Harness) -> None:
    assert await harness.driver.schedule.leader() is None
    assert await harness.driver.schedule.states() == []
    assert await harness.driver.schedule.slots() == []


async def test_one_leads_at_a_time(harness: Harness) -> None:
    other = await harness.second()
    now = await harness.driver.inspect.now()
    mine = await harness.driver.schedule.lead("a", lease=LEASE)
    assert (mine.holder, mine.term, mine.lease_until, mine.now) == ("a", 1, now + LEASE, now)
    theirs = await other.schedule.lead("b", lease=LEASE)
    assert theirs == mine
    assert not theirs.held_by("b")


async def test_a_leader_that_renews_keeps_its_term(harness: Harness) -> None:
    term = await lead(harness)
    for _ in range(5):
        await harness.advance(LEASE / 2)
        assert await lead(harness) == term
    leader = await harness.driver.schedule.leader()
    assert leader is not None
    assert leader.lease_until == leader.now + LEASE


async def test_a_lapsed_lead_is_taken_over_with_a_new_term(harness: Harness) -> None:
    term = await lead(harness, "a")
    await harness.advance(LEASE - timedelta(microseconds=1))
    assert (await harness.driver.schedule.lead("b", lease=LEASE)).holder == "a"
    await harness.advance(timedelta(microseconds=1))
    assert await lead(harness, "b") == term + 1
    assert not (await harness.driver.schedule.lead("a", lease=LEASE)).held_by("a")


async def test_a_leader_whose_lease_lapsed_begins_a_new_term(harness: Harness) -> None:
    term = await lead(harness)
    await harness.advance(LEASE)
    assert await lead(harness) == term + 1


async def test_resigning_frees_the_lead_at_once_and_another_s_not_at_all(harness: Harness) -> None:
    term = await lead(harness, "a")
    await harness.driver.schedule.resign("b")
    assert not (await harness.driver.schedule.lead("b", lease=LEASE)).held_by("b")
    await harness.driver.schedule.resign("a")
    assert await lead(harness, "b") == term + 1


async def test_each_scope_has_a_leader_of_its_own_and_the_last_to_lead_is_told(harness: Harness) -> None:
    assert await lead(harness, "a") == 1
    other = await harness.driver.schedule.lead("b", lease=2 * LEASE, scope="other")
    assert (other.holder, other.term) == ("b", 1)
    assert (await harness.driver.schedule.lead("a", lease=LEASE, scope="other")).holder == "b"
    latest = await harness.driver.schedule.leader()
    assert latest is not None
    assert latest.holder == "b"
    await harness.driver.schedule.resign("b")
    assert (await harness.driver.schedule.lead("c", lease=LEASE, scope="other")).term == 2
    assert await lead(harness, "a") == 1


# -- arming --------------------------------------------------------------------------------------------
async def test_a_task_is_armed_once_and_decided_up_to_then(harness: Harness) -> None:
    term, now = await armed(harness)
    assert await state(harness) == TaskState("digest", "* * * * *", "UTC", now, now, None, None)
    await harness.advance(STEP)
    await lead(harness)
    await harness.driver.schedule.arm("a", term, [DIGEST, Arming("other", "@daily", "UTC")])
    assert (await state(harness)).watermark == now
    assert (await state(harness, "other")).watermark == now + STEP


@pytest.mark.parametrize("changed", [{"cron": "@hourly"}, {"tz": "Europe/Berlin"}])
async def test_a_task_whose_cron_or_zone_changed_begins_anew(harness: Harness, changed: dict[str, str]) -> None:
    term, now = await armed(harness)
    await harness.driver.schedule.fault("a", term, "digest", "broken")
    await harness.advance(STEP)
    await lead(harness)
    again = replace(DIGEST, **changed)
    await harness.driver.schedule.arm("a", term, [again])
    assert await state(harness) == TaskState("digest", again.cron, again.tz, now + STEP, now + STEP, None, None)


async def test_a_task_that_is_declared_no_more_is_retired_and_goes_on_when_it_is_back(harness: Harness) -> None:
    term, now = await armed(harness)
    await harness.driver.schedule.retire("b", term, ["digest"])
    assert not (await state(harness)).retired
    await harness.driver.schedule.retire("a", term, ["digest", "unheard of"])
    assert (await state(harness)).retired
    await harness.advance(STEP)
    await harness.driver.schedule.arm("a", term, [DIGEST])
    assert await state(harness) == TaskState("digest", "* * * * *", "UTC", now, now, None, None)


async def test_who_does_not_lead_arms_nothing(harness: Harness) -> None:
    term = await lead(harness, "a")
    await harness.driver.schedule.arm("b", term, [DIGEST])
    await harness.driver.schedule.arm("a", term + 1, [DIGEST])
    assert await harness.driver.schedule.states() == []


async def test_a_task_belongs_to_who_armed_it_while_that_one_leads(harness: Harness) -> None:
    schedule = harness.driver.schedule
    _, now = await armed(harness)
    other = await schedule.lead("b", lease=10 * LEASE, scope="other")
    changed = replace(DIGEST, cron="@hourly")
    await schedule.arm("b", other.term, [changed])
    await schedule.retire("b", other.term, ["digest"])
    kept = await state(harness)
    assert (kept.cron, kept.retired, kept.owned_by_another("other")) == (DIGEST.cron, False, True)
    assert kept.leader is not None
    assert kept.leader.holder == "a"
    await harness.advance(LEASE)
    assert not (await state(harness)).owned_by_another("other")
    await schedule.arm("b", other.term, [DIGEST])
    taken = await state(harness)
    assert (taken.owner, taken.watermark, taken.owned_by_another("other")) == ("other", now, False)
    term = await lead(harness)
    await schedule.arm("a", term, [DIGEST])
    assert (await state(harness)).owner == "other"


# -- dispatching ---------------------------------------------------------------------------------------
async def test_a_dispatch_is_slot_jobs_and_watermark(harness: Harness) -> None:
    term, now = await armed(harness)
    await harness.advance(STEP)
    await lead(harness)
    answer = await harness.driver.schedule.dispatch("a", term, dispatch(now + STEP, keys=("x", "y")))
    assert answer is not None
    assert answer.fresh
    assert [each.deduped for each in answer.jobs] == [False, False]
    after = await state(harness)
    assert (after.watermark, after.last_fired) == (now + STEP, now + STEP)
    (slot,) = await harness.driver.schedule.slots("digest")
    assert (slot.task, slot.occurrence, slot.outcome, slot.reason) == ("digest", now + STEP, "fired", None)
    assert (slot.through, slot.slots, slot.term, slot.decided_at) == (None, 1, term, now + STEP)
    assert slot.job_ids == tuple(each.id for each in answer.jobs)
    assert {(await row(harness, each.id)).state for each in answer.jobs} == {"ready"}


async def test_a_slot_fires_once_for_ever_whatever_became_of_its_job(harness: Harness) -> None:
    term, now = await armed(harness)
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now))
    await end(harness, await take_one(harness))
    again = await harness.driver.schedule.dispatch("a", term, dispatch(now))
    assert again is not None
    assert (again.fresh, again.jobs) == (False, ())
    assert await count(harness) == 1
    await harness.advance(LEASE)
    later = await lead(harness, "b")
    other = await (await harness.second()).schedule.dispatch("b", later, dispatch(now))
    assert other is not None
    assert not other.fresh
    assert await count(harness) == 1


async def test_a_decided_slot_still_moves_the_watermark(harness: Harness) -> None:
    term, now = await armed(harness)
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now + STEP, watermark=now))
    await harness.advance(STEP)
    await lead(harness)
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now + STEP))
    assert (await state(harness)).watermark == now + STEP


async def test_the_watermark_never_goes_back_and_never_into_the_future(harness: Harness) -> None:
    term, now = await armed(harness)
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now + STEP))
    assert (await state(harness)).watermark == now
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now - STEP))
    assert (await state(harness)).watermark == now


@pytest.mark.parametrize("how", ["lapsed", "taken over", "another's", "a former term"])
async def test_nothing_is_stored_once_the_term_is_over(harness: Harness, how: str) -> None:
    term, now = await armed(harness)
    holder = "a"
    if how in {"lapsed", "taken over"}:
        await harness.advance(LEASE)
    if how == "taken over":
        await lead(harness, "b")
    elif how == "another's":
        holder = "b"
    elif how == "a former term":
        term -= 1
    assert await harness.driver.schedule.dispatch(holder, term, dispatch(now)) is None
    await harness.driver.schedule.fault(holder, term, "digest", "broken")
    assert await count(harness) == 0
    assert await harness.driver.schedule.slots() == []
    assert (await state(harness)).last_error is None


async def test_a_dispatch_that_is_refused_leaves_nothing(harness: Harness) -> None:
    term, now = await armed(harness)
    bad = dispatch(now, jobs=(job(), job(run_at=now.replace(tzinfo=None))))
    with pytest.raises(Invariant):
        await harness.driver.schedule.dispatch("a", term, bad)
    assert await count(harness) == 0
    assert await harness.driver.schedule.slots() == []
    answer = await harness.driver.schedule.dispatch("a", term, dispatch(now))
    assert answer is not None
    assert answer.fresh


async def test_slots_that_will_not_fire_are_one_line_with_its_reason(harness: Harness) -> None:
    term, now = await armed(harness)
    lapse = Lapse(now - 3 * STEP, now - STEP, 3, SlotOutcome.SKIPPED, "catch_up is skip")
    answer = await harness.driver.schedule.dispatch(
        "a", term, dispatch(now, outcome=SlotOutcome.CAUGHT_UP, lapse=lapse)
    )
    assert answer is not None
    fired, lapsed = await harness.driver.schedule.slots("digest")
    assert (fired.occurrence, fired.outcome) == (now, "caught-up")
    assert (lapsed.occurrence, lapsed.through, lapsed.slots) == (now - 3 * STEP, now - STEP, 3)
    assert (lapsed.outcome, lapsed.reason, lapsed.job_ids) == ("skipped", "catch_up is skip", ())


async def test_a_task_without_entries_decides_its_slot_too(harness: Harness) -> None:
    term, now = await armed(harness)
    answer = await harness.driver.schedule.dispatch("a", term, dispatch(now, keys=()))
    assert answer is not None
    assert (answer.fresh, answer.jobs) == (True, ())
    assert [slot.job_ids for slot in await harness.driver.schedule.slots()] == [()]


async def test_an_error_is_kept_until_the_next_dispatch(harness: Harness) -> None:
    term, now = await armed(harness)
    await harness.driver.schedule.fault("a", term, "digest", "ValueError: no")
    assert (await state(harness)).last_error == "ValueError: no"
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now))
    assert (await state(harness)).last_error is None


async def test_the_ledger_is_latest_first_and_bounded(harness: Harness) -> None:
    term, now = await armed(harness)
    for minutes in (2, 1, 0):
        assert await harness.driver.schedule.dispatch("a", term, dispatch(now - minutes * STEP))
    assert await harness.driver.schedule.dispatch("a", term, dispatch(now, task="other", keys=("o",)))
    mine = await harness.driver.schedule.slots("digest", limit=2)
    assert [slot.occurrence for slot in mine] == [now, now - STEP]
    assert len(await harness.driver.schedule.slots()) == 4


async def test_the_latest_runs_say_how_their_jobs_stand(harness: Harness) -> None:
    term, now = await armed(harness)
    skipped = Lapse(now - 2 * STEP, now - STEP, 2, SlotOutcome.SKIPPED, "catch_up is skip")
    await harness.driver.schedule.dispatch("a", term, dispatch(now, lapse=skipped))
    await end(harness, await take_one(harness), Outcome.DEAD, error_code="X_B")
    await harness.driver.schedule.dispatch("a", term, dispatch(now + STEP, keys=("k", "l")))
    await harness.advance(2 * STEP)
    await end(harness, await take_one(harness, limit=1))
    await harness.driver.schedule.dispatch("a", term, dispatch(now + 2 * STEP, keys=()))
    at = [(now + n * STEP, "fired") for n in (2, 1, 0)] + [(now - 2 * STEP, "skipped")]
    runs = await harness.driver.schedule.runs(["nightly", "digest"])
    assert [(run.occurrence, run.outcome) for run in runs] == at
    assert [(run.jobs, run.states, run.error_code) for run in runs] == [
        (0, (), None),
        (2, ("done", "ready"), None),
        (1, ("dead",), "X_B"),
        (0, (), None),
    ]
    assert (runs[1].began, runs[1].ended) == (now + 2 * STEP, now + 2 * STEP)
    assert len(await harness.driver.schedule.runs(["digest"], each=1)) == 1
