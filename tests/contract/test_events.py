"""Events: stored with their publisher's transaction, delivered once it has committed, taken once by each run."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import SECOND, end, put, put_and_take, record, retry, row, step, take, take_one
from tests.support.eventually import eventually
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.events import Look, NewEvent, Seen, Sight
from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.steps import StepKind, StepStatus
from ultijobs._queue.telling import Signal, SignalKind

DAY = timedelta(days=1)


class RollBack(Exception):
    pass


def event(name: str = "paid", payload: str = "null", **fields: Any) -> NewEvent:
    return NewEvent(new_id(), name, payload, **fields)


async def publish(harness: Harness, name: str = "paid", payload: str = "null", **fields: Any) -> UUID:
    """An event of its own; a second later it is."""
    made = event(name, payload, **fields)
    await harness.driver.events.publish([made])
    await harness.advance(SECOND)
    return made.id


async def begin(harness: Harness, claimed: ClaimedJob, name: str = "wait", **fields: Any) -> None:
    """The record of a wait, as its first visit leaves it."""
    waits = {"kind": StepKind.WAIT, "status": StepStatus.WAITING, "output": None, "event": "paid", "wake_in": DAY}
    (answer,) = await record(harness, step(claimed, name, **{**waits, **fields}))
    assert answer.held


def look_of(claimed: ClaimedJob, name: str = "wait", **fields: Any) -> Look:
    return Look(claimed.id, claimed.run_id, claimed.lease_no, name, **fields)


async def look(harness: Harness, claimed: ClaimedJob, name: str = "wait", **fields: Any) -> Seen:
    (seen,) = await harness.driver.events.look([look_of(claimed, name, **fields)])
    return seen


async def wait(harness: Harness, claimed: ClaimedJob, name: str = "wait", **fields: Any) -> Seen:
    await begin(harness, claimed, name, **fields)
    return await look(harness, claimed, name)


async def park(harness: Harness, claimed: ClaimedJob, name: str = "wait", **fields: Any) -> None:
    """The run waits and holds no process."""
    seen = await wait(harness, claimed, name, **fields)
    assert seen.sight is Sight.NOTHING
    await end(harness, claimed, Outcome.SUSPENDED, run_at=seen.wake_at)


async def parked(harness: Harness, **fields: Any) -> UUID:
    claimed = await put_and_take(harness)
    await park(harness, claimed, **fields)
    return claimed.id


def id_of(seen: Seen) -> UUID:
    assert seen.sight is Sight.EVENT
    return UUID(json.loads(seen.output or "")["id"])


async def is_due(harness: Harness, id: UUID) -> bool:
    found = await row(harness, id)
    return found.run_at <= await harness.driver.inspect.now()


# -- what a wait receives --------------------------------------------------------------------------------
async def test_an_event_that_came_before_the_wait_is_there_at_once(harness: Harness) -> None:
    await put(harness)
    published = await publish(harness, payload='{"amount": 7}', key="o-1")
    claimed = await take_one(harness)
    seen = await wait(harness, claimed, match="o-1")
    assert id_of(seen) == published
    stored = json.loads(seen.output or "")
    assert (stored["name"], stored["key"], stored["payload"]) == ("paid", "o-1", {"amount": 7})
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.status, found.output) == ("completed", seen.output)
    assert found.completed_at == await harness.driver.inspect.now()


async def test_an_event_that_came_before_the_run_was_created_is_none_of_its(harness: Harness) -> None:
    await publish(harness)
    claimed = await put_and_take(harness)
    assert (await wait(harness, claimed)).sight is Sight.NOTHING


async def test_a_wait_since_now_looks_back_to_its_first_visit(harness: Harness) -> None:
    await put(harness)
    await publish(harness)
    claimed = await take_one(harness)
    await begin(harness, claimed)
    assert (await look(harness, claimed, since_run=False)).sight is Sight.NOTHING
    await harness.advance(SECOND)
    later = await publish(harness)
    assert id_of(await look(harness, claimed, since_run=False)) == later


async def test_the_earliest_that_matches_is_taken(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await publish(harness, "refunded", key="o-1")
    other = await publish(harness, key="o-2")
    first = await publish(harness, key="o-1")
    await publish(harness, key="o-1")
    assert id_of(await wait(harness, claimed, "of a key", match="o-1")) == first
    assert id_of(await wait(harness, claimed, "of any key")) == other


async def test_a_run_gets_each_event_once_and_every_run_gets_it(harness: Harness) -> None:
    mine, others = await put_and_take(harness), await put_and_take(harness)
    first, second = await publish(harness), await publish(harness)
    assert [id_of(await wait(harness, mine, name)) for name in ("a", "b")] == [first, second]
    assert (await wait(harness, mine, "c")).sight is Sight.NOTHING
    assert id_of(await wait(harness, others, "a")) == first


async def test_two_waits_of_a_run_that_look_at_once_get_two_events(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    published = {await publish(harness), await publish(harness)}
    await begin(harness, claimed, "a")
    await begin(harness, claimed, "b")
    seen = await harness.driver.events.look([look_of(claimed, "a"), look_of(claimed, "b")])
    assert {id_of(each) for each in seen} == published


async def test_an_expired_event_is_none(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await publish(harness, ttl=SECOND)
    assert (await wait(harness, claimed)).sight is Sight.NOTHING


async def test_a_payload_comes_back_as_it_was_written(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    written = '{"b":0.10000000000000000001,"a":[1,{"ü":"\\u2028"}],"big":123456789012345678901234567890}'
    await publish(harness, payload=written)
    seen = await wait(harness, claimed)
    assert written in (seen.output or "")


async def test_a_look_that_is_repeated_answers_the_same(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await publish(harness)
    first = await wait(harness, claimed)
    await publish(harness)
    assert (await look(harness, claimed)).output == first.output
    await begin(harness, claimed, "late", event="never", wake_in=timedelta(0))
    for _ in range(2):
        assert (await look(harness, claimed, "late")).sight is Sight.OVER


async def test_a_claim_that_is_not_held_sees_and_writes_nothing(harness: Harness) -> None:
    old = await put_and_take(harness)
    await begin(harness, old)
    await publish(harness)
    await end(harness, old, Outcome.RETURNED)
    new = await take_one(harness)
    assert await harness.driver.events.look([look_of(old)]) == [Seen(Sight.LOST)]
    (found,) = await harness.driver.inspect.steps(old.run_id)
    assert found.status == "waiting"
    assert (await look(harness, new)).sight is Sight.EVENT


async def test_a_wait_for_something_else_now_keeps_its_deadline(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await begin(harness, claimed, match="o-1")
    (before,) = await harness.driver.inspect.steps(claimed.run_id)
    await harness.advance(SECOND)
    published = await publish(harness, key="o-2")
    seen = await wait(harness, claimed, match="o-2")
    assert id_of(seen) == published
    (after,) = await harness.driver.inspect.steps(claimed.run_id)
    assert after.wake_at == before.wake_at


# -- deadlines -------------------------------------------------------------------------------------------
async def test_a_wait_is_over_at_its_deadline_without_an_event(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await begin(harness, claimed, wake_in=60 * SECOND)
    now = await harness.driver.inspect.now()
    assert await look(harness, claimed) == Seen(Sight.NOTHING, None, now + 60 * SECOND)
    assert (await look(harness, claimed, again=SECOND)).wake_at == now + SECOND
    assert (await look(harness, claimed, again=DAY)).wake_at == now + 60 * SECOND
    await harness.advance(20 * SECOND)
    await harness.driver.settle([])
    await harness.advance(40 * SECOND)
    await end(harness, claimed, Outcome.RETURNED)
    again = await take_one(harness)
    assert (await look(harness, again)).sight is Sight.OVER
    (found,) = await harness.driver.inspect.steps(claimed.run_id)
    assert (found.status, found.output) == ("completed", "null")


async def test_a_required_wait_stays_open_and_a_retry_starts_it_over(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed, "before", position=1))
    await begin(harness, claimed, wake_in=SECOND, position=2)
    await begin(harness, claimed, "beside", event="refunded", position=3)
    await harness.advance(2 * SECOND)
    assert (await look(harness, claimed, required=True)).sight is Sight.OVER
    assert (await look(harness, claimed, required=True)).sight is Sight.OVER
    await end(harness, claimed, Outcome.DEAD)
    assert await retry(harness, [claimed.id]) == [(True, None)]
    assert [each.name for each in await harness.driver.inspect.steps(claimed.run_id)] == ["before", "beside"]
    again = await take_one(harness)
    seen = await wait(harness, again, wake_in=SECOND)
    assert seen == Seen(Sight.NOTHING, None, await harness.driver.inspect.now() + SECOND)


async def test_an_event_in_time_wins_over_a_deadline_that_has_passed_meanwhile(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await begin(harness, claimed, wake_in=2 * SECOND)
    published = await publish(harness)
    await harness.advance(5 * SECOND)
    assert id_of(await look(harness, claimed, required=True)) == published


async def test_a_retry_from_a_wait_may_take_its_event_again(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    published = await publish(harness)
    await wait(harness, claimed)
    await end(harness, claimed, Outcome.DEAD)
    assert await retry(harness, [claimed.id], from_step="wait") == [(True, None)]
    assert id_of(await wait(harness, await take_one(harness))) == published


# -- waking ----------------------------------------------------------------------------------------------
async def test_a_publish_makes_due_exactly_the_runs_that_wait_for_it(harness: Harness) -> None:
    mine = await parked(harness, match="o-1")
    any_key = await parked(harness)
    others = [await parked(harness, match="o-2"), await parked(harness, event="refunded")]
    before = [await row(harness, one) for one in others]
    assert await harness.driver.events.publish([event(key="o-1")]) == 2
    assert [await is_due(harness, one) for one in (mine, any_key, *others)] == [True, True, False, False]
    assert [await row(harness, one) for one in others] == before
    assert {each.id for each in await take(harness)} == {mine, any_key}


async def test_an_event_without_a_key_wakes_those_alone_that_ask_for_none(harness: Harness) -> None:
    keyed, any_key = await parked(harness, match="o-1"), await parked(harness)
    assert await harness.driver.events.publish([event()]) == 1
    assert [await is_due(harness, one) for one in (keyed, any_key)] == [False, True]


async def test_a_hundred_runs_that_wait_for_one_key_all_get_it(harness: Harness) -> None:
    ids = {await parked(harness, match="o-1") for _ in range(100)}
    published = event(key="o-1")
    assert await harness.driver.events.publish([published]) == 100
    claimed = await take(harness)
    assert {each.id for each in claimed} == ids
    seen = await harness.driver.events.look([look_of(each) for each in claimed])
    assert {id_of(each) for each in seen} == {published.id}


async def test_a_run_that_is_about_to_park_is_due_at_once(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    seen = await wait(harness, claimed)
    await publish(harness)
    await end(harness, claimed, Outcome.SUSPENDED, run_at=seen.wake_at)
    assert (await row(harness, claimed.id)).state == JobState.SUSPENDED
    assert (await look(harness, await take_one(harness))).sight is Sight.EVENT


async def test_what_woke_an_earlier_claim_wakes_no_later_one(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    await begin(harness, claimed)
    await publish(harness)
    await end(harness, claimed, Outcome.RETURNED)
    again = await take_one(harness)
    assert (await look(harness, again)).sight is Sight.EVENT
    await park(harness, again, "next")
    assert not await is_due(harness, claimed.id)


async def test_a_wake_costs_no_attempt_and_leaves_other_states_alone(harness: Harness) -> None:
    waiting = await parked(harness)
    cancelled = await parked(harness)
    await harness.driver.cancel([cancelled])
    dead = await put_and_take(harness)
    await begin(harness, dead)
    await end(harness, dead, Outcome.DEAD)
    before = [await row(harness, cancelled), await row(harness, dead.id)]
    assert await harness.driver.events.publish([event()]) == 1
    assert [await row(harness, cancelled), await row(harness, dead.id)] == before
    assert (await take_one(harness)).attempt == 1
    assert waiting


async def test_who_listens_is_told_of_what_became_due(harness: Harness) -> None:
    heard: list[Signal] = []
    await parked(harness)
    async with harness.driver.subscribe(heard.append):
        await harness.driver.events.publish([event()])
        await eventually(lambda: Signal(SignalKind.QUEUE, "default") in heard)


# -- transactions ----------------------------------------------------------------------------------------
async def test_a_commit_brings_the_event_and_wakes_its_runs(harness: Harness) -> None:
    waiting = await parked(harness)
    heard: list[Signal] = []
    async with harness.driver.subscribe(heard.append):
        async with harness.driver.transaction() as tx:
            assert await harness.driver.events.publish([event()], tx=tx) == 0
            await harness.driver.events.deliver()
            assert not (await harness.driver.attention()).events
            assert not await is_due(harness, waiting)
            assert (await harness.driver.events.page()).rows == []
        await eventually(lambda: any(each.kind in {SignalKind.EVENT, SignalKind.QUEUE} for each in heard))
    await harness.driver.events.deliver()
    assert await is_due(harness, waiting)
    assert (await look(harness, await take_one(harness))).sight is Sight.EVENT
    assert await harness.driver.events.deliver() == 0
    assert not (await harness.driver.attention()).events


async def test_an_event_of_a_transaction_that_rolled_back_wakes_nobody(harness: Harness) -> None:
    waiting = await parked(harness)
    with contextlib.suppress(RollBack):
        async with harness.driver.transaction() as tx:
            await harness.driver.events.publish([event()], tx=tx)
            raise RollBack
    assert await harness.driver.events.deliver() == 0
    assert not await is_due(harness, waiting)
    assert (await harness.driver.events.page()).rows == []


async def test_a_commit_wakes_a_run_that_began_to_wait_after_the_publish(harness: Harness) -> None:
    claimed = await put_and_take(harness)
    async with harness.driver.transaction() as tx:
        await harness.driver.events.publish([event()], tx=tx)
        await park(harness, claimed)
    await harness.driver.events.deliver()
    assert await is_due(harness, claimed.id)
    assert (await look(harness, await take_one(harness))).sight is Sight.EVENT


async def test_several_clients_that_deliver_at_once_wake_each_run_once(harness: Harness) -> None:
    ids = [await parked(harness, match=f"o-{number}") for number in range(10)]
    async with harness.driver.transaction() as tx:
        await harness.driver.events.publish([event(key=f"o-{number}") for number in range(10)], tx=tx)
    other = await harness.second()
    await asyncio.gather(harness.driver.events.deliver(), other.events.deliver())
    await harness.driver.events.deliver()
    assert {each.id for each in await take(harness)} == set(ids)


# -- lists -----------------------------------------------------------------------------------------------
async def test_events_are_listed_newest_first_page_by_page(harness: Harness) -> None:
    ids = [await publish(harness, key=key, published_by="ann@ops") for key in ("a", "b", "a")]
    other = await publish(harness, "refunded", ttl=DAY)
    events = harness.driver.events
    page = await events.page(limit=3)
    assert [each.id for each in page.rows] == [other, ids[2], ids[1]]
    assert [each.id for each in (await events.page(limit=3, after=page.next)).rows] == [ids[0]]
    assert page.as_of == await harness.driver.inspect.now()
    first = page.rows[0]
    assert (first.name, first.key, first.expires_at - first.published_at) == ("refunded", None, DAY)
    assert page.rows[1].published_by == "ann@ops"
    named = await events.page(name="paid", limit=2)
    assert [each.id for each in named.rows] == [ids[2], ids[1]]
    last = await events.page(name="paid", limit=2, after=named.next)
    assert ([each.id for each in last.rows], last.next) == ([ids[0]], None)
    assert [each.id for each in (await events.page(name="paid", key="a")).rows] == [ids[2], ids[0]]
    assert (await events.page(name="nothing")).rows == []


async def test_an_event_that_is_published_twice_is_one(harness: Harness) -> None:
    made = event()
    await harness.driver.events.publish([made])
    await harness.driver.events.publish([made, event("refunded")])
    assert sorted(each.name for each in (await harness.driver.events.page()).rows) == ["paid", "refunded"]


@pytest.mark.parametrize("count", [0, 3])
async def test_many_are_published_at_once(harness: Harness, count: int) -> None:
    await parked(harness)
    woken = await harness.driver.events.publish([event(payload=str(number)) for number in range(count)])
    assert woken == (1 if count else 0)
    assert len((await harness.driver.events.page()).rows) == count
