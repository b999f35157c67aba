"""What one process may start: counted by what runs and by what started, and forgotten when it counts no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.worker.flights import claimed
from ultijobs import Limits, Rate
from ultijobs._queue.claims import Allowance, ClaimedJob
from ultijobs._worker import limiter as module
from ultijobs._worker.limiter import Limiter


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Hand:
    return Hand()


def limiter(clock: Hand, concurrency: int = 8, **limits: Any) -> Limiter:
    return Limiter(Limits(**limits), concurrency=concurrency, clock=clock)


def jobs(numbers: Iterable[int], tenant: str | None = "acme", queue: str = "default") -> list[ClaimedJob]:
    return [claimed(number, tenant_id=tenant, queue=queue) for number in numbers]


def test_an_end_that_is_told_twice_makes_no_second_slot(clock: Hand):
    held = limiter(clock, per_tenant=2, per_queue={"default": 3})
    held.started(jobs([1, 2]))
    assert held.ended(1)
    before = (held.free, held.tenants(), held.queues(["default"], 9))
    assert not held.ended(1)
    assert not held.ended(99)
    assert (held.free, held.tenants(), held.queues(["default"], 9)) == before
    assert (held.free, held.queues(["default"], 9)) == (7, {"default": 2})


def test_a_process_runs_no_more_than_the_lower_of_its_two_limits(clock: Hand):
    assert limiter(clock, per_process=3).free == 3
    assert limiter(clock, concurrency=2, per_process=3).free == 2
    assert limiter(clock).free == 8


def test_queues_are_counted_apart(clock: Hand):
    held = limiter(clock, per_queue={"mail": 1})
    held.started(jobs([1], queue="mail") + jobs([2]))
    assert held.queues(["default", "mail"], 6) == {"default": 6, "mail": 0}
    assert held.full_queues() == ("mail",)
    assert held.ended(1), "something of the queue may start now"
    assert not held.ended(2), "nothing was held back by it"
    assert held.full_queues() == ()


def test_a_tenant_has_what_its_running_jobs_leave(clock: Hand):
    held = limiter(clock, per_tenant=2)
    held.started(jobs([1, 2]) + jobs([3], "globex") + jobs([4], None))
    assert held.tenants() == Allowance(2, {"acme": 0, "globex": 1})
    assert held.limited() == {"acme": None}
    assert not held.ended(3)
    assert held.ended(1)
    assert held.tenants() == Allowance(2, {"acme": 1})


def test_a_rate_counts_the_starts_of_a_sliding_window(clock: Hand):
    held = limiter(clock, tenant_rate=Rate(3, per="2s"))
    for number in range(3):
        held.started(jobs([number]))
        held.ended(number)
        clock.time += 0.5
    assert held.tenants() == Allowance(3, {"acme": 0})
    assert held.limited() == {"acme": 102.0}
    assert held.opens_at() == 102.0
    clock.time = 101.99
    assert held.tenants() == Allowance(3, {"acme": 0})
    clock.time = 102.0
    assert held.tenants() == Allowance(3, {"acme": 1})
    assert held.opens_at() is None
    held.started(jobs([9]))
    assert held.opens_at() == 102.5


def test_the_tighter_of_a_tenant_s_limits_counts(clock: Hand):
    held = limiter(clock, per_tenant=1, tenant_rate=Rate(2, per="10s"))
    held.started(jobs([1]))
    assert held.limited() == {"acme": None}
    held.ended(1)
    held.started(jobs([2]))
    held.ended(2)
    assert held.limited() == {"acme": 110.0}
    assert held.tenants() == Allowance(1, {"acme": 0})


def test_without_limits_on_tenants_nothing_is_kept_of_them(clock: Hand):
    held = limiter(clock, per_process=5, per_queue={"default": 2})
    held.started(jobs([1]))
    assert held.tenants() is None
    assert held.limited() == {}
    assert held.opens_at() is None


def test_a_hundred_thousand_tenants_leave_nothing_behind(clock: Hand):
    held = limiter(clock, concurrency=200_000, per_tenant=1, tenant_rate=Rate(1, per="2s"))
    for number in range(100_000):
        held.started(jobs([number], f"tenant-{number}"))
        held.ended(number)
    clock.time += 2.0
    assert held.tenants() == Allowance(1, {})
    left = (held._running, held._queues, held._tenants, held._starts, held._started)
    assert [len(each) for each in left] == [0] * 5


def test_of_very_many_starts_in_one_window_the_oldest_are_forgotten(clock: Hand, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_STARTS", 10)
    held = limiter(clock, tenant_rate=Rate(1, per="1d"))
    for number in range(12):
        held.started(jobs([number], f"tenant-{number}"))
    counted = held.tenants()
    assert counted is not None
    assert set(counted.left) == {f"tenant-{number}" for number in range(2, 12)}
