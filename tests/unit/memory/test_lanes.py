"""Lanes are read back as they were written, and used up ones are forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ultijobs._ids import new_id
from ultijobs._queue.claims import Allowance, ClaimAsk
from ultijobs._queue.lanes import capped_name, lane_of, tenant_of
from ultijobs._queue.records import NewJob
from ultijobs.memory import MemoryDriver


@pytest.mark.parametrize("tenant", ["acme", "a,t:b", "n:send", ",", "t:"])
@pytest.mark.parametrize("name", ["send", "t:send", "n:n:", "sénd"])
def test_a_lane_tells_the_name_and_the_tenant_that_it_was_made_of(name: str, tenant: str) -> None:
    both = lane_of(name, tenant, capped=True, by_tenant=True)
    assert (capped_name(both), tenant_of(both)) == (name, tenant)
    own = lane_of(name, tenant, capped=False, by_tenant=True)
    assert (capped_name(own), tenant_of(own)) == (None, tenant)
    capped = lane_of(name, tenant, capped=True, by_tenant=False)
    assert (capped_name(capped), tenant_of(capped)) == (name, None)
    assert lane_of(name, None, capped=False, by_tenant=True) == ""


async def test_tenants_whose_jobs_were_claimed_leave_nothing_in_the_index() -> None:
    driver = MemoryDriver()
    tenants = [f"tenant-{number}" for number in range(2_000)]
    lanes = [lane_of("send", tenant, capped=False, by_tenant=True) for tenant in tenants]
    jobs = [NewJob(new_id(), "send", "null", tenant_id=t, lane=lane) for t, lane in zip(tenants, lanes, strict=True)]
    await driver.enqueue(jobs)
    ask = ClaimAsk("w", {"default": 5_000}, ("send",), 5_000, timedelta(seconds=30), tenants=Allowance(1))
    assert len(await driver.claim(ask)) == 2_000
    assert await driver.claim(ask) == []
    assert len(driver._store.waiting) == 0
