"""With an outbox, `tx=` stages on the caller's connection, whatever library it is of; the call sites are the same."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from tests.integration.outbox.conftest import Mail, send
from tests.support.eventually import eventually
from ultijobs import App
from ultijobs.errors import OutboxConflict, PayloadInvalid


async def test_a_committed_row_is_published_under_the_id_that_was_returned(app, caller, outbox, jobs, relaying):
    row = await caller.enqueue(send, Mail(to="a"))
    many = await caller.enqueue_many(send, [Mail(to="b"), Mail(to="c"), Mail(to="c")])
    assert [answer.deduped for answer in many] == [False, False, True]
    assert (await outbox.rows()).rows == []
    await caller.commit()
    staged = (await outbox.rows()).rows
    assert {kept.id for kept in staged} == {row.id, many[0].id, many[1].id}
    assert await jobs() == []
    relaying()
    await eventually(lambda: _all_published(outbox))
    assert await jobs() == ["a", "b", "c"]
    assert (await app.driver.inspect.job(row.id)).run_id == row.run_id
    assert {kept.job_id for kept in (await outbox.rows()).rows} == {kept.id for kept in staged}


async def test_a_rollback_leaves_nothing_to_publish(app, caller, outbox):
    await caller.enqueue(send, Mail(to="a"))
    async with caller.lost_savepoint():
        await caller.enqueue(send, Mail(to="b"))
    await caller.rollback()
    assert (await outbox.rows()).rows == []


async def test_a_lost_savepoint_takes_only_its_own_row_along(app, caller, outbox):
    kept = await caller.enqueue(send, Mail(to="kept"))
    async with caller.lost_savepoint():
        await caller.enqueue(send, Mail(to="gone"))
    with pytest.raises(PayloadInvalid):
        await caller.enqueue(send, {"to": "x\x00"})
    await caller.commit()
    assert [row.id for row in (await outbox.rows()).rows] == [kept.id]


async def test_a_bound_transaction_stages_and_what_steps_outside_goes_straight_to_the_queue(app, caller, outbox, jobs):
    await caller.enqueue_bound(app, send, Mail(to="inside"))
    await send.enqueue(Mail(to="beside"), tx=False)
    await send.enqueue(Mail(to="without"))
    await caller.commit()
    assert await jobs() == ["beside", "without"]
    assert len((await outbox.rows()).rows) == 1


async def test_a_conflict_that_cannot_be_known_yet_is_refused_as_an_option(app, caller, outbox):
    with pytest.raises(OutboxConflict, match="on_conflict"):
        await caller.enqueue(send, Mail(to="a"), on_conflict="error")
    await caller.commit()
    assert (await outbox.rows()).rows == []


async def test_an_event_is_staged_in_the_transaction_and_is_the_queues_once_it_is_published(
    app, caller, outbox, relaying
):
    await caller.publish(app, "paid", {"text": "quote ' \" \\ % $1 {} %s ü 🌍"}, key="o-1", ttl="1h")
    async with caller.lost_savepoint():
        await caller.publish(app, "gone")
    with pytest.raises(PayloadInvalid):
        await caller.publish(app, "paid", "x\x00")
    await caller.commit()
    (staged,) = (await outbox.rows()).rows
    assert (staged.kind, staged.name, staged.state) == ("event", "paid", "staged")
    assert (await app.driver.events.page()).rows == []
    relaying()
    await eventually(lambda: _all_published(outbox))
    (event,) = (await app.driver.events.page()).rows
    assert (event.id, event.name, event.key) == (staged.id, "paid", "o-1")
    assert event.expires_at - event.published_at == timedelta(hours=1)


async def test_an_event_that_steps_outside_goes_straight_to_the_queue(app, caller, outbox):
    await app.publish("paid", tx=False)
    await app.publish("paid")
    assert len((await app.driver.events.page()).rows) == 2
    assert (await outbox.rows()).rows == []


async def test_a_sync_program_stages_also_while_the_queue_is_away(app_url, outbox):
    staging = App(jobs=[send], driver="postgresql://postgres@127.0.0.1:1/nowhere", outbox=app_url)

    def program() -> None:
        with psycopg.connect(app_url) as connection:
            staging.enqueue_sync(send, Mail(to="a"), tx=connection)
            staging.publish_sync("paid", 1, tx=connection)

    await asyncio.to_thread(program)
    assert [(row.kind, row.state) for row in (await outbox.rows()).rows] == [("event", "staged"), ("job", "staged")]


async def _all_published(outbox) -> bool:
    rows = (await outbox.rows()).rows
    return bool(rows) and all(row.state == "published" for row in rows)
