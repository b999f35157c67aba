"""What is published on a caller's transaction exists at its commit, or never, whichever library the caller uses."""

from __future__ import annotations

import pytest

from tests.integration.transactions.conftest import Mail
from tests.support.eventually import eventually
from ultijobs.errors import PayloadInvalid


async def test_a_commit_brings_the_event_whole_and_tells_the_workers(app, caller):
    told: list[str] = []
    async with app.driver.subscribe(lambda signal: told.append(signal.kind.value)):
        await caller.publish(app, "paid", Mail(to="a"), key="o-1", ttl="1h")
        await caller.publish(app, "paid", {"text": "quote ' \" \\ % $1 {} %s ü 🌍", "none": None})
        assert (await app.driver.events.page()).rows == []
        assert "event" not in told
        await caller.commit()
        await eventually(lambda: "event" in told)
    rows = (await app.driver.events.page()).rows
    assert [(row.name, row.key) for row in rows] == [("paid", None), ("paid", "o-1")]
    assert (rows[1].expires_at - rows[1].published_at).total_seconds() == 3_600


async def test_a_rollback_takes_the_event_along(app, caller):
    await caller.publish(app, "paid", 1)
    await caller.rollback()
    await app.driver.events.deliver()
    assert (await app.driver.events.page()).rows == []


async def test_a_lost_savepoint_takes_its_own_event_along(app, caller):
    await caller.publish(app, "kept")
    async with caller.lost_savepoint():
        await caller.publish(app, "gone")
    await caller.commit()
    assert [row.name for row in (await app.driver.events.page()).rows] == ["kept"]


async def test_a_refused_payload_leaves_the_transaction_usable(app, caller):
    for wrong in ("\x00", "\ud800", float("nan"), object()):
        with pytest.raises(PayloadInvalid):
            await caller.publish(app, "paid", wrong)
    await caller.publish(app, "paid")
    await caller.commit()
    assert len((await app.driver.events.page()).rows) == 1
