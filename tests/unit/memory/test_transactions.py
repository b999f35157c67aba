"""What only a transaction in memory has to answer for."""

from __future__ import annotations

import pytest

from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob
from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.memory import MemoryDriver, _enqueue


def job(key: str | None = None) -> NewJob:
    return NewJob(id=new_id(), name="charge", input="null", idempotency_key=key)


async def test_a_transaction_that_has_ended_takes_no_more() -> None:
    driver = MemoryDriver()
    async with driver.transaction() as tx:
        pass
    with pytest.raises(Invariant, match="ended already"):
        await driver.enqueue([job()], tx=tx)


async def test_a_foreign_transaction_is_refused_by_its_name() -> None:
    with pytest.raises(Invariant, match=r"builtins\.object"):
        await MemoryDriver().enqueue([job()], tx=object())


async def test_waiting_for_one_s_own_transaction_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_enqueue, "_PATIENCE_S", 0.05)
    driver = MemoryDriver()
    async with driver.transaction() as tx:
        await driver.enqueue([job("k")], tx=tx)
        with pytest.raises(DriverUnavailable, match="charge"):
            await driver.enqueue([job("k")])
    (answer,) = await driver.enqueue([job("k")])
    assert answer.deduped


async def test_each_driver_is_a_store_of_its_own() -> None:
    first, second = MemoryDriver(), MemoryDriver()
    await first.enqueue([job("k")])
    (answer,) = await second.enqueue([job("k")])
    assert not answer.deduped
