"""Transactions: what is enqueued in one exists for others at its commit, or never."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import job, put, row, take, take_one
from ultijobs._queue.records import UniqueMode
from ultijobs._queue.where import ANY
from ultijobs.errors import Invariant


class RollBack(Exception):
    pass


async def test_a_commit_brings_the_jobs(harness: Harness) -> None:
    async with harness.driver.transaction() as tx:
        (first,) = await harness.driver.enqueue([job(idempotency_key="k")], tx=tx)
        (again,) = await harness.driver.enqueue([job(idempotency_key="k")], tx=tx)
        assert (again.id, again.deduped) == (first.id, True)
        assert await take(harness) == []
        assert await harness.driver.inspect.job(first.id) is None
    assert (await row(harness, first.id)).state == "ready"
    assert (await take_one(harness)).id == first.id


async def test_a_roll_back_leaves_nothing(harness: Harness) -> None:
    with contextlib.suppress(RollBack):
        async with harness.driver.transaction() as tx:
            await harness.driver.enqueue([job(idempotency_key="k"), job()], tx=tx)
            raise RollBack
    assert (await harness.driver.inspect.jobs(ANY)).rows == []
    await put(harness, idempotency_key="k")


async def test_a_transaction_dedupes_against_what_was_there(harness: Harness) -> None:
    holder = await put(harness, idempotency_key="k")
    async with harness.driver.transaction() as tx:
        (answer,) = await harness.driver.enqueue([job(idempotency_key="k")], tx=tx)
    assert (answer.id, answer.deduped) == (holder, True)


async def test_work_outside_goes_on_meanwhile(harness: Harness) -> None:
    async with harness.driver.transaction() as tx:
        (inside,) = await harness.driver.enqueue([job(idempotency_key="a")], tx=tx)
        outside = await put(harness, idempotency_key="b")
        assert (await take_one(harness)).id == outside
    assert (await take_one(harness)).id == inside.id


@pytest.mark.parametrize("commits", [True, False])
async def test_an_enqueue_of_the_same_key_waits_for_the_end(harness: Harness, commits: bool) -> None:
    other = await harness.second()
    with contextlib.suppress(RollBack):
        async with harness.driver.transaction() as tx:
            (inside,) = await harness.driver.enqueue([job(idempotency_key="k")], tx=tx)
            waiting = asyncio.create_task(other.enqueue([job(idempotency_key="k")]))
            assert not (await asyncio.wait([waiting], timeout=0.05))[0]
            if not commits:
                raise RollBack
    (answer,) = await waiting
    assert answer.deduped is commits
    assert (answer.id == inside.id) is commits
    assert len((await harness.driver.inspect.jobs(ANY)).rows) == 1


async def test_a_rerun_in_a_transaction_waits_behind_the_first(harness: Harness) -> None:
    first = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    await take_one(harness)
    async with harness.driver.transaction() as tx:
        (answer,) = await harness.driver.enqueue([job(idempotency_key="k", unique=UniqueMode.RERUN)], tx=tx)
    assert (await row(harness, answer.id)).behind == first


async def test_a_first_that_ends_before_the_commit_holds_nobody_for_long(harness: Harness) -> None:
    first = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    claimed = await take_one(harness)
    assert claimed.id == first
    async with harness.driver.transaction() as tx:
        (answer,) = await harness.driver.enqueue([job(idempotency_key="k", unique=UniqueMode.RERUN)], tx=tx)
        await harness.driver.cancel([first])
    await harness.driver.reap([])
    assert (await take_one(harness)).id == answer.id


async def test_what_is_no_transaction_is_refused(harness: Harness) -> None:
    with pytest.raises(Invariant):
        await harness.driver.enqueue([job()], tx=object())
    assert (await harness.driver.inspect.jobs(ANY)).rows == []
