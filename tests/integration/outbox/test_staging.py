"""With an outbox, `tx=` stages on the caller's connection, whatever library it is of; the call sites are the same."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

import psycopg
import pytest

from tests.integration.outbox.conftest import Mail, send
from tests.integration.transactions.callers import CALLERS, AsyncpgCaller
from tests.support.eventually import eventually
from ultijobs import App
from ultijobs._enqueue.staging import Staging
from ultijobs._queue.where import ANY
from ultijobs.errors import (
    DriverUnavailable,
    Invariant,
    OutboxConflict,
    OutboxMisplaced,
    PayloadInvalid,
    SchemaOutdated,
)
from ultijobs.memory import MemoryDriver


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


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.__name__)
async def astray(request, pg_url):
    """A caller whose transaction is on the queue's database, which is a copy of the outbox's with all its tables."""
    async with request.param.on(pg_url) as caller:
        yield caller


async def test_a_transaction_on_the_queue_s_database_is_refused_naming_both_and_stays_usable(
    app, astray, app_url, pg_url, jobs
):
    for call in (
        astray.enqueue(send, Mail(to="a")),
        astray.enqueue_many(send, [Mail(to="b"), Mail(to="c")]),
        astray.enqueue_bound(app, send, Mail(to="d")),
        astray.publish(app, "paid"),
    ):
        with pytest.raises(OutboxMisplaced) as refusal:
            await call
        queue_database, outbox_database = pg_url.rpartition("/")[2], app_url.rpartition("/")[2]
        assert f"the database {queue_database} at 127.0.0.1:" in refusal.value.cause
        assert f"/{outbox_database}" in refusal.value.cause
        assert f"/{outbox_database}" in refusal.value.fix
    assert await astray.execute("select count(*) from x_outbox") == 0
    await astray.commit()
    await send.enqueue(Mail(to="straight"))
    assert await jobs() == ["straight"]


async def test_a_transaction_of_a_queue_that_is_no_database_is_refused(app_url, outbox):
    async with App(jobs=[send], driver=MemoryDriver(), outbox=app_url) as app, app.driver.transaction() as tx:
        with pytest.raises(Invariant, match="not a connection that the Postgres driver can join"):
            await send.enqueue(Mail(to="a"), tx=tx)
        assert (await app.driver.inspect.jobs(ANY)).rows == (await outbox.rows()).rows == []


async def test_where_the_outbox_is_is_asked_once_and_by_one(app, connection, monkeypatch):
    asked: list[str] = []
    read = Staging._read

    async def counted(self: Staging) -> str:
        asked.append("read")
        return await read(self)

    monkeypatch.setattr(Staging, "_read", counted)
    async with contextlib.AsyncExitStack() as stack:
        begun = [await stack.enter_async_context(AsyncpgCaller.on(app.outbox)) for _ in range(5)]
        await asyncio.gather(*(caller.enqueue(send, Mail(to=str(n))) for n, caller in enumerate(begun)))
        await begun[0].publish(app, "paid")
    assert asked == ["read"]


async def test_an_outbox_that_was_restored_since_is_asked_again(app, caller, connection, outbox):
    await caller.enqueue(send, Mail(to="before"))
    await caller.commit()
    await connection.execute("update x_schema set identity = gen_random_uuid()")
    await caller.enqueue(send, Mail(to="after"))
    await caller.commit()
    assert len((await outbox.rows()).rows) == 2


async def test_an_outbox_that_does_not_answer_is_named_and_nothing_is_staged(queue, app_url, connection):
    away = App(jobs=[send], driver=queue, outbox="postgresql://postgres:secret@127.0.0.1:1/shop")
    async with away, connection.transaction():
        with pytest.raises(DriverUnavailable, match=r"127\.0\.0\.1:1/shop") as refusal:
            await send.enqueue(Mail(to="a"), tx=connection)
        assert await connection.fetchval("select count(*) from x_outbox") == 0
    assert "secret" not in str(refusal.value)


async def test_an_outbox_without_tables_is_named_with_the_command_that_makes_them(queue, empty_pg_url, connection):
    async with App(jobs=[send], driver=queue, outbox=empty_pg_url), connection.transaction():
        with pytest.raises(SchemaOutdated, match="the outbox postgresql://") as refusal:
            await send.enqueue(Mail(to="a"), tx=connection)
    assert refusal.value.fix.startswith("ultijobs migrate --database-url postgresql://")


async def _all_published(outbox) -> bool:
    rows = (await outbox.rows()).rows
    return bool(rows) and all(row.state == "published" for row in rows)
