"""Caps of the fleet, allowances of tenants, turns: what a claim leaves where it is, and what it takes instead."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import LEASE, SECOND, end, job, put, renew, retry, row, take, take_one
from ultijobs._queue.claims import Allowance, Beat, ClaimAsk, ClaimedJob, HeldSlot
from ultijobs._queue.lanes import lane_of
from ultijobs._queue.records import Outcome
from ultijobs._queue.where import ANY

CAPS = {"charge": 2}


async def claim(harness: Harness, *names: str, slots: int = 100, **fields: Any) -> list[ClaimedJob]:
    return await harness.driver.claim(ClaimAsk("w-1", {"default": slots}, names or ("charge",), slots, LEASE, **fields))


async def put_capped(harness: Harness, n: int, name: str = "charge", **fields: Any) -> None:
    tenant = fields.get("tenant_id")
    lane = lane_of(name, tenant, capped=True, by_tenant=tenant is not None)
    await harness.driver.enqueue([job(name, lane=lane, **fields) for _ in range(n)])


async def put_of(harness: Harness, tenant: str, n: int, **fields: Any) -> None:
    lane = lane_of("charge", tenant, capped=False, by_tenant=True)
    await harness.driver.enqueue([job(tenant_id=tenant, lane=lane, **fields) for _ in range(n)])


async def held(harness: Harness, name: str = "charge") -> list[int]:
    return [slot.slot for slot in await harness.driver.inspect.slots(name)]


# -- caps of the fleet -----------------------------------------------------------------------------------
async def test_no_more_of_a_capped_name_run_than_it_has_slots(harness: Harness) -> None:
    assert harness.driver.keeps_slots
    await put_capped(harness, 5)
    first = await claim(harness, caps=CAPS)
    assert len(first) == 2
    assert await held(harness) == [0, 1]
    other = await harness.second()
    assert await other.claim(ClaimAsk("w-2", {"default": 9}, ("charge",), 9, LEASE, caps=CAPS)) == []
    await end(harness, first[0])
    assert len(await claim(harness, caps=CAPS)) == 1
    assert await claim(harness, caps=CAPS) == []


async def test_what_waits_for_a_slot_is_not_touched(harness: Harness) -> None:
    await put_capped(harness, 2)
    waiting = await put(harness, lane="n:charge")
    before = await row(harness, waiting)
    running = await claim(harness, caps=CAPS)
    assert waiting not in {one.id for one in running}
    assert await claim(harness, caps=CAPS) == []
    seen = await row(harness, waiting)
    assert (seen.attempt, seen.updated_at, seen.run_at, seen.state) == (0, before.updated_at, before.run_at, "ready")
    stats = await harness.driver.inspect.stats()
    await harness.advance(30 * SECOND)
    assert stats.totals["ready"].value == 1
    assert (await harness.driver.inspect.stats()).oldest_ready_ms == 30_000


async def test_a_capped_name_holds_up_nobody_else(harness: Harness) -> None:
    await put_capped(harness, 20)
    await harness.advance(SECOND)
    others = [await put(harness, "refund") for _ in range(3)]
    claimed = await claim(harness, "charge", "refund", caps=CAPS, slots=4)
    assert Counter(one.name for one in claimed) == {"charge": 2, "refund": 2}
    assert {one.id for one in await claim(harness, "charge", "refund", caps=CAPS)} < set(others)


async def test_slots_of_a_name_are_one_over_queues_priorities_and_tenants(harness: Harness) -> None:
    await put_capped(harness, 2, priority=5, tenant_id="acme")
    await put_capped(harness, 2, queue="other")
    await put_capped(harness, 2, tenant_id="globex")
    ask = ClaimAsk("w-1", {"default": 9, "other": 9}, ("charge",), 9, LEASE, caps={"charge": 3})
    claimed = await harness.driver.claim(ask)
    assert [(one.priority, one.tenant_id) for one in claimed[:2]] == [(5, "acme"), (5, "acme")]
    assert len(claimed) == 3
    assert await harness.driver.claim(ask) == []


@pytest.mark.parametrize(
    ("outcome", "fields"),
    [
        (Outcome.OK, {}),
        (Outcome.RETRIED, {"delay": LEASE}),
        (Outcome.RETURNED, {"delay": LEASE}),
        (Outcome.SUSPENDED, {"delay": LEASE}),
        (Outcome.DEAD, {}),
        (Outcome.FAILED, {}),
        (Outcome.CANCELLED, {}),
    ],
)
async def test_whatever_ends_a_claim_frees_its_slot(harness: Harness, outcome: Outcome, fields: dict[str, Any]) -> None:
    await put_capped(harness, 1)
    (first,) = await claim(harness, caps={"charge": 1})
    if outcome is Outcome.SUSPENDED:
        fields = {"run_at": first.claimed_at + LEASE}
    await put_capped(harness, 1)
    assert await held(harness) == [0]
    await end(harness, first, outcome, **fields)
    assert await held(harness) == []
    (second,) = await claim(harness, caps={"charge": 1})
    assert second.id != first.id


async def test_a_settlement_that_comes_twice_frees_one_slot_once(harness: Harness) -> None:
    await put_capped(harness, 3)
    (first,) = await claim(harness, caps={"charge": 1})
    await end(harness, first)
    (second,) = await claim(harness, caps={"charge": 1})
    await end(harness, first)
    await end(harness, first, Outcome.RETRIED)
    assert await claim(harness, caps={"charge": 1}) == []
    assert [slot.job_id for slot in await harness.driver.inspect.slots("charge")] == [second.id]


async def test_a_cancelled_holder_keeps_its_slot_until_its_body_has_ended(harness: Harness) -> None:
    await put_capped(harness, 2)
    (first,) = await claim(harness, caps={"charge": 1})
    await harness.driver.cancel([first.id])
    assert await claim(harness, caps={"charge": 1}) == []
    slot = HeldSlot(first.id, first.lease_no, first.queue)
    assert await harness.driver.let_go([slot, replace(slot, lease_no=first.lease_no + 100)]) == [True, False]
    assert await harness.driver.let_go([slot]) == [False]
    (second,) = await claim(harness, caps={"charge": 1})
    assert second.id != first.id


async def test_a_slot_that_a_cancelled_holder_never_lets_go_is_free_when_its_lease_is_over(harness: Harness) -> None:
    await put_capped(harness, 2)
    (first,) = await claim(harness, caps={"charge": 1})
    await harness.advance(LEASE - SECOND)
    await renew(harness, Beat(first.id, first.lease_no, lane=first.lane))
    await harness.driver.cancel([first.id])
    await harness.advance(LEASE - SECOND)
    await harness.driver.reap([])
    assert await claim(harness, caps={"charge": 1}) == []
    await harness.advance(2 * SECOND)
    assert (await harness.driver.attention()).lapsed
    assert await harness.driver.reap([]) == []
    (second,) = await claim(harness, caps={"charge": 1})
    assert second.id != first.id


async def test_a_cancelled_holder_that_is_retried_takes_a_slot_of_its_own(harness: Harness) -> None:
    await put_capped(harness, 1)
    (first,) = await claim(harness, caps=CAPS)
    await harness.driver.cancel([first.id])
    await retry(harness, [first.id])
    (again,) = await claim(harness, caps=CAPS)
    assert await harness.driver.let_go([HeldSlot(first.id, first.lease_no, first.queue)]) == [True]
    assert [slot.job_id for slot in await harness.driver.inspect.slots("charge")] == [again.id]


async def test_a_slot_is_kept_by_renewals_and_free_when_the_lease_lapses(harness: Harness) -> None:
    await put_capped(harness, 2)
    (first,) = await claim(harness, caps={"charge": 1})
    for _ in range(3):
        await harness.advance(LEASE - SECOND)
        await renew(harness, Beat(first.id, first.lease_no, lane=first.lane))
        assert await harness.driver.reap([]) == []
        assert await claim(harness, caps={"charge": 1}) == []
    (slot,) = await harness.driver.inspect.slots("charge")
    assert (slot.slot, slot.job_id, slot.worker_id) == (0, first.id, "w-1")
    await harness.crash(first)
    (reaped,) = await harness.driver.reap([])
    assert reaped.id == first.id
    assert await held(harness) == []
    assert len(await claim(harness, caps={"charge": 1})) == 1


async def test_a_lowered_cap_counts_the_claims_that_it_cuts_off_until_they_end(harness: Harness) -> None:
    await put_capped(harness, 9)
    running = await claim(harness, caps={"charge": 5})
    by_slot = {slot.slot: slot.job_id for slot in await harness.driver.inspect.slots("charge")}
    by_id = {one.id: one for one in running}
    await end(harness, by_id[by_slot[0]])
    await end(harness, by_id[by_slot[1]])
    assert await claim(harness, caps=CAPS) == [], "three still run"
    await end(harness, by_id[by_slot[3]])
    assert await claim(harness, caps=CAPS) == [], "two still run"
    await end(harness, by_id[by_slot[4]])
    assert len(await claim(harness, caps=CAPS)) == 1
    assert len(await claim(harness, caps={"charge": 4})) == 2, "a raised cap gives more at once"


async def test_rows_of_a_capped_name_outside_of_its_lane_wait_until_they_are_filed(harness: Harness) -> None:
    for tenant in (None, "acme"):
        await harness.driver.enqueue(
            [job(tenant_id=tenant, lane=lane_of("charge", tenant, capped=False, by_tenant=True)) for _ in range(2)]
        )
    await put(harness, "refund")
    assert [one.name for one in await claim(harness, "charge", "refund", caps=CAPS)] == ["refund"]
    assert await harness.driver.file(["default"], ["charge", "refund"], CAPS) == 4
    assert await harness.driver.file(["default"], ["charge", "refund"], CAPS) == 0
    assert len(await claim(harness, "charge", "refund", caps=CAPS)) == 2


async def test_rows_in_the_lane_of_a_name_that_has_no_cap_any_more_are_filed_back(harness: Harness) -> None:
    await put_capped(harness, 2)
    await put_capped(harness, 1, tenant_id="acme")
    await put_capped(harness, 1, "refund")
    assert await claim(harness, "charge", "refund") == []
    assert await harness.driver.file(["default"], ["charge"], {}) == 3
    claimed = await claim(harness, "charge", "refund")
    assert sorted(one.lane for one in claimed) == ["", "", "t:acme"]


async def test_rows_of_tenants_are_filed_into_their_lanes_in_queues_that_tell_them_apart(harness: Harness) -> None:
    for tenant in ("acme", None):
        for lane in ("", "n:charge"):
            await put(harness, tenant_id=tenant, lane=lane)
        await put(harness, "unknown", tenant_id=tenant)
        await put(harness, queue="bulk", tenant_id=tenant)
    assert await harness.driver.file(["default", "bulk"], ["charge"], CAPS, ["default"]) == 6
    assert await harness.driver.file(["default", "bulk"], ["charge"], CAPS, ["default"]) == 0
    rows = (await harness.driver.inspect.jobs(ANY)).rows
    assert sorted((row.queue, row.name, row.tenant_id or "", row.lane) for row in rows) == [
        ("bulk", "charge", "", "n:charge"),
        ("bulk", "charge", "acme", "n:charge"),
        ("default", "charge", "", "n:charge"),
        ("default", "charge", "", "n:charge"),
        ("default", "charge", "acme", "n:charge,t:acme"),
        ("default", "charge", "acme", "n:charge,t:acme"),
        ("default", "unknown", "", ""),
        ("default", "unknown", "acme", "t:acme"),
    ]


async def test_what_may_be_held_back_is_no_time_to_wake_at(harness: Harness) -> None:
    async def due(**fields: Any) -> timedelta | None:
        return await harness.driver.next_due(["default"], ["charge"], **fields)

    await put_capped(harness, 1)
    assert await due(caps=CAPS) is None
    await put_of(harness, "acme", 1)
    assert await due(tenants=Allowance(1, {"acme": 0})) is None
    assert await due(tenants=Allowance(1)) == timedelta(0)
    await put_capped(harness, 1, priority=3, delay=LEASE)
    wait = await due(caps=CAPS, tenants=Allowance(1, {"acme": 0}))
    assert wait is not None
    assert LEASE - SECOND < wait <= LEASE


# -- tenants -----------------------------------------------------------------------------------------------
async def test_a_tenant_gets_no_more_than_its_allowance_and_the_next_one_the_rest(harness: Harness) -> None:
    await put_of(harness, "acme", 9)
    await harness.advance(SECOND)
    await put_of(harness, "globex", 9)
    claimed = await claim(harness, slots=8, tenants=Allowance(3, {"acme": 2}))
    assert Counter(one.tenant_id for one in claimed) == {"acme": 2, "globex": 3}
    claimed = await claim(harness, slots=8, tenants=Allowance(3, {"acme": 0, "globex": 1}))
    assert Counter(one.tenant_id for one in claimed) == {"globex": 1}


async def test_an_allowance_holds_over_queues_priorities_and_names(harness: Harness) -> None:
    await put_of(harness, "acme", 2, priority=1)
    await put_of(harness, "acme", 2, queue="other")
    await put_of(harness, "acme", 2)
    await put_capped(harness, 2, "refund", tenant_id="acme")
    ask = ClaimAsk(
        "w-1", {"default": 9, "other": 9}, ("charge", "refund"), 9, LEASE, caps={"refund": 9}, tenants=Allowance(3)
    )
    claimed = await harness.driver.claim(ask)
    assert [one.priority for one in claimed] == [1, 1, 0]


async def test_jobs_without_a_tenant_are_under_no_allowance(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(5)])
    await put_capped(harness, 5, "refund")
    claimed = await claim(harness, "charge", "refund", tenants=Allowance(1), caps={"refund": 3})
    assert Counter(one.name for one in claimed) == {"charge": 5, "refund": 3}


async def test_an_allowance_holds_too_for_rows_that_were_filed_without_lanes(harness: Harness) -> None:
    await harness.driver.enqueue([job(tenant_id="acme") for _ in range(6)])
    await harness.driver.enqueue([job() for _ in range(2)])
    await put_of(harness, "acme", 2)
    await harness.advance(SECOND)
    await harness.driver.enqueue([job(tenant_id="globex") for _ in range(6)])
    claimed = await claim(harness, tenants=Allowance(2))
    assert Counter(one.tenant_id for one in claimed) == {"acme": 2, None: 2, "globex": 2}
    left = Allowance(2, {"acme": 0, "globex": 1})
    assert Counter(one.tenant_id for one in await claim(harness, tenants=left)) == {"globex": 1}
    left = Allowance(2, {"acme": 1, "globex": 0})
    assert Counter(one.tenant_id for one in await claim(harness, tenants=left)) == {"acme": 1}


# -- turns -------------------------------------------------------------------------------------------------
async def test_lanes_of_a_fair_queue_take_turns(harness: Harness) -> None:
    for tenant, n in (("acme", 30), ("globex", 6), ("initech", 6)):
        await put_of(harness, tenant, n)
    fair = frozenset({"default"})
    seen: Counter[str | None] = Counter()
    for _ in range(6):
        claimed = await claim(harness, slots=3, fair=fair)
        assert len(claimed) == 3
        seen.update(one.tenant_id for one in claimed)
    assert seen == {"acme": 6, "globex": 6, "initech": 6}
    assert len(await claim(harness, slots=9, fair=fair)) == 9, "what is left goes to whoever has work"


async def test_a_claim_of_one_goes_round_too(harness: Harness) -> None:
    for tenant in ("acme", "globex", "initech"):
        await put_of(harness, tenant, 4)
    fair = frozenset({"default"})
    turns = [one.tenant_id for _ in range(6) for one in await claim(harness, slots=1, fair=fair)]
    assert set(turns[:3]) == {"acme", "globex", "initech"}
    assert turns[3:] == turns[:3]


async def test_in_a_fair_queue_priorities_come_first(harness: Harness) -> None:
    await put_of(harness, "acme", 2)
    await put_of(harness, "globex", 2, priority=1)
    claimed = await claim(harness, slots=2, fair=frozenset({"default"}))
    assert {one.tenant_id for one in claimed} == {"globex"}


async def test_elsewhere_the_lane_with_the_oldest_row_comes_first(harness: Harness) -> None:
    await put_of(harness, "globex", 2)
    await harness.advance(SECOND)
    await put_of(harness, "acme", 2)
    await put(harness)
    assert [one.tenant_id for one in await claim(harness, slots=2)] == ["globex"] * 2
    assert (await take_one(harness, limit=1)).lane in {"", "t:acme"}
    assert len(await take(harness)) == 2
