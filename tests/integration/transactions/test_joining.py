"""What is enqueued on a caller's transaction commits or vanishes with it, whichever library the caller uses."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.integration.transactions.conftest import Mail, refresh, send, sync
from tests.support.eventually import eventually
from ultijobs import App
from ultijobs._queue.telling import Signal, SignalKind
from ultijobs._worker.worker import Worker
from ultijobs.errors import Invariant, JobDuplicate, OutboxNoTx, PayloadInvalid


async def test_a_commit_brings_the_job_under_the_id_that_was_returned(app, caller, stored):
    row = await caller.enqueue(send, Mail(to="a"))
    assert await stored() == []
    assert await app.driver.inspect.job(row.id) is None
    await caller.commit()
    kept = await app.driver.inspect.job(row.id)
    assert kept is not None
    assert (kept.id, kept.run_id, kept.state) == (row.id, row.run_id, "ready")


async def test_a_rollback_takes_every_job_along(app, caller, stored):
    await caller.enqueue(send, Mail(to="a"))
    await caller.enqueue_many(send, [Mail(to="b"), Mail(to="c")])
    await caller.rollback()
    assert await stored() == []


async def test_a_lost_savepoint_takes_only_its_own_job_along(app, caller, stored):
    await caller.enqueue(send, Mail(to="kept"))
    async with caller.lost_savepoint():
        await caller.enqueue(send, Mail(to="gone"))
    await caller.commit()
    assert await stored() == ["kept"]


async def test_a_commit_wakes_the_workers_and_nothing_does_before(app, caller):
    told: list[str] = []

    def hear(signal: Signal) -> None:
        if signal.kind is SignalKind.QUEUE:
            told.append(signal.value or "")

    async with app.driver.subscribe(hear):
        await send.enqueue(Mail(to="first"), tx=False)
        await eventually(lambda: told == ["default"])
        told.clear()
        await caller.enqueue(send, Mail(to="a"))
        assert told == []
        await caller.commit()
        await eventually(lambda: told == ["default"])


async def test_a_lost_connection_is_an_error_and_leaves_no_job(app, caller, stored, pg_url):
    await caller.enqueue(send, Mail(to="a"))
    killer = await asyncpg.connect(pg_url)
    await killer.execute("select pg_terminate_backend($1)", await caller.pid())
    await killer.close()
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each library has its own
        await caller.commit()
    assert not isinstance(caught.value, Invariant)
    assert await stored() == []
    assert not (await send.enqueue(Mail(to="a"), tx=False)).deduped


async def test_a_key_is_deduped_against_committed_rows_and_the_transaction_s_own(app, caller, stored):
    held = await send.enqueue(Mail(to="held"), tx=False)
    again = await caller.enqueue(send, Mail(to="held"))
    assert (again.id, again.deduped) == (held.id, True)
    first, second, third = await caller.enqueue_many(send, [Mail(to="x"), Mail(to="x"), Mail(to="held")])
    assert (first.deduped, second.deduped, third.deduped) == (False, True, True)
    assert (second.id, third.id) == (first.id, held.id)
    assert (await caller.enqueue(send, Mail(to="x"))).id == first.id
    await caller.commit()
    assert await stored() == ["held", "x"]


async def test_a_conflict_that_is_to_be_an_error_leaves_the_transaction_usable(app, caller, stored):
    held = await send.enqueue(Mail(to="held"), tx=False)
    with pytest.raises(JobDuplicate) as caught:
        await caller.enqueue(send, Mail(to="held"), on_conflict="error")
    assert caught.value.existing_id == held.id
    with pytest.raises(JobDuplicate):
        await caller.enqueue_many(send, [Mail(to="a"), Mail(to="held")], on_conflict="error")
    await caller.enqueue(send, Mail(to="b"), on_conflict="error")
    await caller.commit()
    assert await stored() == ["b", "held"]


async def test_a_refused_input_leaves_the_transaction_usable(app, caller, stored):
    for bad in ({"to": "x\x00"}, {"to": "\ud800"}):
        with pytest.raises(PayloadInvalid):
            await caller.enqueue(send, bad)
    await caller.enqueue(send, Mail(to="a"))
    await caller.commit()
    assert await stored() == ["a"]


async def test_the_unique_modes_hold_inside_a_transaction(app, caller, pg_url):
    first = [await handle.enqueue(Mail(to="k"), tx=False) for handle in (refresh, sync)]
    database = await asyncpg.connect(pg_url)
    await database.execute(
        "update x_jobs set state = 'running', key_held = false, lease_until = now() + interval '1 h'"
    )
    await database.close()
    twins = [await caller.enqueue(handle, Mail(to="k")) for handle in (refresh, sync)]
    more = [await caller.enqueue(handle, Mail(to="k")) for handle in (refresh, sync)]
    await caller.commit()
    assert [twin.deduped for twin in twins] == [False, False]
    assert [again.id for again in more] == [twin.id for twin in twins]
    behind = [(await app.driver.inspect.job(twin.id)).behind for twin in twins]
    assert behind == [None, first[1].id]


async def test_options_and_odd_texts_arrive_as_they_were_given(app, caller):
    text = "100% 'of' \"$1\" %(p1)s \\ ünï 🎉 \n"
    row = await caller.enqueue(send, Mail(to=text), delay="1h", priority=7, max_attempts=9)
    await caller.commit()
    kept = await app.driver.inspect.job(row.id)
    assert (kept.state, kept.priority, kept.max_attempts, kept.idempotency_key) == ("delayed", 7, 9, text)
    assert row.state == "delayed"
    assert await app.driver.inspect.input(row.id) == Mail(to=text).model_dump_json()


async def test_the_caller_s_search_path_does_not_matter(app, caller, stored):
    await caller.execute("set search_path to pg_temp")
    await caller.enqueue(send, Mail(to="a"))
    await caller.enqueue_many(sync, [Mail(to="b"), Mail(to="c")])
    await caller.commit()
    assert await stored() == ["a", "b", "c"]


async def test_thousands_in_one_transaction_are_one_whole(app, caller, stored):
    given = [Mail(to=f"{number:05}") for number in range(2_500)]
    rows = await caller.enqueue_many(send, given)
    assert len({row.id for row in rows}) == 2_500
    assert await stored() == []
    await caller.commit()
    assert await stored() == [mail.to for mail in given]


async def test_a_bound_transaction_is_joined_without_passing_it(app, caller, stored):
    await caller.enqueue_bound(app, send, Mail(to="inside"))
    await send.enqueue(Mail(to="outside"))
    assert await stored() == ["outside"]
    await caller.commit()
    assert await stored() == ["inside", "outside"]


async def test_the_call_of_the_other_kind_is_named(app, caller, stored):
    with pytest.raises(Invariant) as caught:
        await caller.wrong_call(send, Mail(to="a"))
    assert ("enqueue_sync(" if caller.sync else "await enqueue(") in caught.value.fix
    await caller.commit()
    assert await stored() == []


async def test_an_application_that_requires_transactions_takes_this_one(pg_url, caller, stored):
    async with App(jobs=[send], driver=pg_url, transactions="required") as app:
        with pytest.raises(OutboxNoTx):
            await app.enqueue(send, Mail(to="without"))
        await app.enqueue(send, Mail(to="beside"), tx=False)
        await caller.enqueue_bound(app, send, Mail(to="a"))
        await caller.commit()
        assert await stored() == ["a", "beside"]


async def test_an_idle_worker_starts_the_job_when_the_commit_comes(app, caller):
    worker = Worker(app, poll="20s", name="w")
    running = asyncio.create_task(worker.run())
    row = await caller.enqueue(send, Mail(to="a"))
    await eventually(lambda: _workers(app))
    await caller.commit()
    await eventually(lambda: _done(app, row.id))
    worker.stop()
    await running


async def _workers(app) -> bool:
    return any(worker.state in {"healthy", "idle"} for worker in await app.driver.inspect.workers())


async def _done(app, id) -> bool:
    return (await app.driver.inspect.job(id)).state == "done"
