"""`App`: what it accepts, where a handle's enqueue goes, and that sync and async callers share one queue."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from ultijobs import Actor, App, Sizes, UltijobsError, Worker, job
from ultijobs._definitions.ambient import current_application
from ultijobs._queue.records import JobState
from ultijobs.errors import (
    AppAmbiguous,
    DriverUnavailable,
    DurationInvalid,
    Invariant,
    JobConcurrencyUnenforceable,
    JobDuplicate,
    OutboxNoTx,
    PayloadInvalid,
    TenantMismatch,
    ValidationFailed,
)
from ultijobs.memory import MemoryDriver


class Mail(BaseModel):
    to: str
    org: str = "acme"


def mail_job(**options: Any):
    async def send(input: Mail): ...

    return job(Mail, **{"idempotency_key": lambda i: i.to, "tenant": lambda i: i.org, **options})(send)


@pytest.fixture
def send():
    return mail_job()


@pytest.fixture
def app(send):
    made = App(jobs=[send], driver=MemoryDriver())
    yield made
    made._opening._retire()


async def stored(app: App) -> int:
    return sum(row.ready.value + row.delayed.value for row in await app.driver.inspect.queues())


# -- composing -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options",
    [
        {"schema": ""},
        {"schema": 'a"b'},
        {"schema": "pg_mine"},
        {"schema": "x" * 64},
        {"driver": 7},
        {"driver": ""},
        {"limits": {}},
        {"sizes": 3},
        {"retention": None},
        {"transactions": "always"},
        {"classify": {PermissionError: "never"}},
        {"classify": {"PermissionError": "terminal"}},
        {"classify": {ValidationFailed: "retryable"}},
        {"classify": {KeyboardInterrupt: "terminal"}},
        {"report": "sentry"},
        {"lifespan": 3},
        {"redact": "iban"},
        {"redact": [3]},
        {"outbox": 3},
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_naming_it(options):
    (field,) = options
    with pytest.raises(Invariant, match=f"App: {field}"):
        App(**options)


async def test_caps_that_a_driver_cannot_keep_are_refused_naming_every_such_job():
    class Plain(MemoryDriver):
        keeps_slots = False

    jobs = [mail_job(name="capped", concurrency=2), mail_job(name="also", concurrency=1), mail_job()]
    with pytest.raises(JobConcurrencyUnenforceable, match="also, capped"):
        await Worker(App(jobs=jobs, driver=Plain())).run_until_idle()
    await Worker(App(jobs=jobs, driver=MemoryDriver())).run_until_idle()


async def test_without_any_setting_opening_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("ULTIJOBS_DATABASE_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DriverUnavailable) as caught:
        await App().open()
    assert "ULTIJOBS_DATABASE_URL" in caught.value.fix


# -- async callers ---------------------------------------------------------------------------------------
async def test_an_enqueue_stores_one_row_and_dedupes_the_second(app, send):
    async with app:
        first = await send.enqueue(Mail(to="a"))
        second = await send.enqueue(Mail(to="a"))
        assert (first.deduped, first.state) == (False, JobState.READY)
        assert (second.deduped, second.id, second.run_id) == (True, first.id, first.run_id)
        assert (await app.enqueue(send, Mail(to="b"), delay="1h")).state is JobState.DELAYED


async def test_one_key_of_two_tenants_or_two_names_is_two_rows(app, send):
    other = mail_job(name="other")
    async with App(jobs=[send, other], driver=app.driver) as both:
        rows = [
            await both.enqueue(send, Mail(to="a", org="A")),
            await both.enqueue(send, Mail(to="a", org="B")),
            await both.enqueue(other, Mail(to="a", org="A")),
        ]
        assert [row.deduped for row in rows] == [False, False, False]
        again = await both.enqueue(send, Mail(to="a", org="A"))
        assert (again.deduped, again.id) == (True, rows[0].id)


async def test_a_conflict_is_an_error_where_it_is_asked_for(app, send):
    async with app:
        first = await send.enqueue(Mail(to="a"))
        with pytest.raises(JobDuplicate) as caught:
            await send.enqueue(Mail(to="a"), on_conflict="error")
        assert (caught.value.existing_id, caught.value.state) == (first.id, "ready")
        assert "send" in caught.value.cause
        assert "'a'" in caught.value.cause


async def test_many_are_stored_together_and_answered_in_order(app, send):
    async with app:
        await send.enqueue(Mail(to="2"))
        answers = await send.enqueue_many([Mail(to=str(n)) for n in range(4)] + [send.request(Mail(to="9"), delay=9)])
        assert [answer.deduped for answer in answers] == [False, False, True, False, False]
        assert answers[4].state is JobState.DELAYED
        assert await send.enqueue_many([]) == []


async def test_of_many_with_one_bad_input_nothing_is_stored(app, send):
    async with app:
        with pytest.raises(ValidationFailed):
            await send.enqueue_many([Mail(to="1"), {"nobody": True}])
        assert await stored(app) == 0


async def test_of_many_with_one_conflict_nothing_is_stored_where_a_conflict_is_an_error(app, send):
    async with app:
        await send.enqueue(Mail(to="2"))
        with pytest.raises(JobDuplicate):
            await send.enqueue_many([Mail(to="1"), Mail(to="2")], on_conflict="error")
        assert await stored(app) == 1


async def test_what_is_asked_at_the_same_moment_is_answered_each_for_itself(app, send):
    async with app:
        answers = await asyncio.gather(*(send.enqueue(Mail(to=str(n % 10))) for n in range(50)))
        assert sum(not answer.deduped for answer in answers) == 10
        assert len({answer.id for answer in answers}) == 10


@pytest.mark.parametrize(
    ("given", "options", "kind"),
    [
        ({"nobody": 1}, {}, ValidationFailed),
        ({"to": "x\x00"}, {}, PayloadInvalid),
        ({"to": ""}, {}, Invariant),
        ({"to": "a", "org": ""}, {}, Invariant),
        ({"to": "a"}, {"actor": Actor("u", "other")}, TenantMismatch),
        ({"to": "a"}, {"delay": -1}, UltijobsError),
    ],
)
async def test_what_is_refused_stores_nothing(app, send, given, options, kind):
    async with app:
        with pytest.raises(kind):
            await send.enqueue(given, **options)
        assert await stored(app) == 0


async def test_the_size_limit_is_the_application_s(send):
    async with App(jobs=[send], driver=MemoryDriver(), sizes=Sizes(input=100)) as app:
        with pytest.raises(PayloadInvalid, match="more than the limit of 100"):
            await app.enqueue(send, Mail(to="x" * 200))
    async with App(jobs=[send], driver=MemoryDriver()) as app:
        with pytest.raises(PayloadInvalid, match="more than the limit of 1048576"):
            await app.enqueue(send, Mail(to="x" * 1_048_576))


async def test_the_stored_input_is_frozen_at_the_enqueue(app):
    @job(dict[str, int], idempotency_key=lambda _: "k", tenant="none")
    async def count(input): ...

    given = {"n": 1}
    async with App(jobs=[count], driver=app.driver) as own:
        row = await own.enqueue(count, given)
        given["n"] = 2
        assert await own.driver.inspect.input(row.id) == '{"n":1}'


async def test_a_handle_that_is_not_registered_is_refused(app):
    async with app:
        for stranger in (mail_job(name="stranger"), "send", None):
            with pytest.raises(Invariant, match="not a job that is registered"):
                await app.enqueue(stranger, Mail(to="a"))


# -- where a handle's enqueue goes -----------------------------------------------------------------------
async def test_an_enqueue_goes_to_the_ambient_application(send):
    with_it = App(jobs=[send], driver=MemoryDriver())
    other = App(jobs=[send], driver=MemoryDriver())
    async with other, with_it:
        await send.enqueue(Mail(to="a"))
    assert (await stored(with_it), await stored(other)) == (1, 0)
    assert current_application() is None


async def test_without_an_ambient_one_it_goes_to_the_only_one_that_registered_it(app, send):
    await app.open()
    try:
        await send.enqueue(Mail(to="a"))
        assert await stored(app) == 1
    finally:
        await app.close()


async def test_none_or_several_is_ambiguous(send):
    with pytest.raises(AppAmbiguous, match="no live application registered job send"):
        await send.enqueue(Mail(to="a"))
    first, second = App(jobs=[send], driver=MemoryDriver()), App(jobs=[send], driver=MemoryDriver())
    with pytest.raises(AppAmbiguous, match="2 live applications registered job send"):
        await send.enqueue(Mail(to="a"))
    with pytest.raises(AppAmbiguous):
        send.enqueue_sync(Mail(to="a"))
    del first
    gc.collect()
    with pytest.raises(Invariant, match="not open"):
        await send.enqueue(Mail(to="a"))
    assert second.registered(send)


async def test_a_closed_application_says_how_to_open_it(app, send):
    async with app:
        pass
    for _ in range(2):
        with pytest.raises(Invariant, match="not open") as caught:
            await send.enqueue(Mail(to="a"))
        assert "async with app:" in caught.value.fix
    async with app:
        assert not (await send.enqueue(Mail(to="a"))).deduped


async def test_opening_twice_needs_closing_twice(app, send):
    async with app:
        async with app:
            assert app.opened
        assert (await send.enqueue(Mail(to="a"))).state is JobState.READY
    assert app.closed


# -- sync callers ----------------------------------------------------------------------------------------
def test_a_sync_enqueue_opens_by_itself(app, send):
    assert not send.enqueue_sync(Mail(to="a")).deduped
    assert send.enqueue_sync(Mail(to="a")).deduped
    assert [row.deduped for row in send.enqueue_many_sync([Mail(to="a"), Mail(to="b")])] == [True, False]


def test_a_sync_block_opens_and_closes(app, send):
    with app:
        assert current_application() is app
        send.enqueue_sync(Mail(to="a"))
    assert app.closed
    assert [thread for thread in threading.enumerate() if thread.name == "ultijobs-sync"] == []


async def test_a_sync_enqueue_would_block_a_running_loop(app, send):
    async with app:
        with pytest.raises(Invariant, match="would block the running event loop") as caught:
            send.enqueue_sync(Mail(to="a"))
        assert "await enqueue" in caught.value.fix
        with pytest.raises(Invariant, match="would block"):
            app.enqueue_many_sync(send, [])
        with pytest.raises(Invariant, match="async with app"):
            raise_fix(app.__enter__)


def raise_fix(call):
    try:
        call()
    except UltijobsError as error:
        raise type(error)(error.fix) from error


async def test_a_thread_of_an_open_application_enqueues_on_its_loop(app, send):
    async with app:
        row = await asyncio.to_thread(send.enqueue_sync, Mail(to="a"))
        assert (await send.enqueue(Mail(to="a"))).id == row.id
        assert [thread for thread in threading.enumerate() if thread.name == "ultijobs-sync"] == []


async def test_opening_on_a_loop_takes_over_from_the_thread_of_its_own(app, send):
    row = await asyncio.to_thread(send.enqueue_sync, Mail(to="a"))
    async with app:
        assert (await send.enqueue(Mail(to="a"))).id == row.id
        assert [thread for thread in threading.enumerate() if thread.name == "ultijobs-sync"] == []


def test_many_threads_at_once_open_once(app, send):
    rows: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: rows.append(send.enqueue_sync(Mail(to=str(n % 4))))) for n in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) == 24
    assert len({row.id for row in rows}) == 4
    assert len([thread for thread in threading.enumerate() if thread.name == "ultijobs-sync"]) == 1


def test_a_fork_is_noticed_and_opens_anew(app, send):
    send.enqueue_sync(Mail(to="a"))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(send.enqueue_sync(Mail(to="b")).deduped).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read() == "False"
    os.waitpid(child, 0)
    assert not send.enqueue_sync(Mail(to="c")).deduped


# -- transactions ----------------------------------------------------------------------------------------
async def test_a_bound_transaction_is_joined_and_a_rollback_takes_the_row_along(app, send):
    async with app:

        async def rolled_back() -> None:
            async with app.driver.transaction() as tx, app.transaction(tx):
                await send.enqueue(Mail(to="a"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await rolled_back()
        assert await stored(app) == 0
        async with app.driver.transaction() as tx, app.transaction(tx):
            await send.enqueue(Mail(to="a"))
            await send.enqueue(Mail(to="b"), tx=False)
            assert await stored(app) == 1
        assert await stored(app) == 2


async def test_a_task_that_outlives_the_block_joins_nothing(app, send):
    async with app:
        gate = asyncio.Event()

        async def later():
            await gate.wait()
            return await send.enqueue(Mail(to="late"))

        async with app.driver.transaction() as tx, app.transaction(tx):
            outliving = asyncio.create_task(later())
            await asyncio.sleep(0)
        gate.set()
        assert not (await outliving).deduped


async def test_a_required_transaction_is_required(send):
    async with App(jobs=[send], driver=MemoryDriver(), transactions="required") as app:
        with pytest.raises(OutboxNoTx):
            await app.enqueue(send, Mail(to="a"))
        assert not (await app.enqueue(send, Mail(to="a"), tx=False)).deduped
        async with app.driver.transaction() as tx:
            assert not (await app.enqueue(send, Mail(to="b"), tx=tx)).deduped


def stand_in(module: str, name: str, **members: Any) -> Any:
    return type(name, (), {"__module__": module, "__qualname__": name, **members})()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("sqlalchemy.orm.session", "Session"),
        ("sqlalchemy.engine.base", "Connection"),
        ("psycopg", "Connection"),
        ("django.db.backends.base.base", "BaseDatabaseWrapper"),
    ],
)
async def test_a_sync_transaction_in_an_async_call_names_the_other_call(app, send, module, name):
    async with app:
        with pytest.raises(Invariant, match="sync") as caught:
            await send.enqueue(Mail(to="a"), tx=stand_in(module, name))
        assert "enqueue_sync" in caught.value.fix


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("asyncpg.connection", "Connection"),
        ("sqlalchemy.ext.asyncio.session", "AsyncSession"),
        ("psycopg", "AsyncConnection"),
    ],
)
def test_an_async_transaction_in_a_sync_call_names_the_other_call(app, send, module, name):
    with pytest.raises(Invariant, match="async") as caught:
        send.enqueue_sync(Mail(to="a"), tx=stand_in(module, name))
    assert "await enqueue(" in caught.value.fix


async def test_what_is_no_transaction_is_refused(app, send):
    async with app:
        with pytest.raises(Invariant, match="not a transaction that can be joined"):
            await send.enqueue(Mail(to="a"), tx=object())
        assert await stored(app) == 0


# -- events ----------------------------------------------------------------------------------------------
async def test_what_is_published_is_checked_and_stored(app):
    async with app:
        await app.publish("paid", {"id": 1}, key="7")
        await app.publish("mailed", Mail(to="a"), ttl="1h")
        for wrong in ({"id": object()}, float("nan"), "\x00", "\ud800", "x" * 2_000_000):
            with pytest.raises(PayloadInvalid) as caught:
                await app.publish("paid", wrong)
            assert "path" in caught.value.meta
        for name, options in (("", {}), ("a b", {}), ("paid", {"key": ""}), ("paid", {"key": 7}), ("paid", {"tx": 7})):
            with pytest.raises(Invariant):
                await app.publish(name, **options)
        for ttl in (0, -1, "soon", True):
            with pytest.raises((DurationInvalid, Invariant), match="ttl"):
                await app.publish("paid", ttl=ttl)
        rows = (await app.driver.events.page()).rows
    assert [(row.name, row.key) for row in rows] == [("mailed", None), ("paid", "7")]
    assert rows[0].expires_at - rows[0].published_at == timedelta(hours=1)


async def test_what_is_published_in_a_transaction_is_there_at_its_commit(app):
    async with app, app.driver.transaction() as tx:
        await app.publish("paid", tx=tx)
        async with app.transaction(tx):
            await app.publish("paid")
        assert (await app.driver.events.page()).rows == []
    assert len((await app.driver.events.page()).rows) == 2


async def test_an_event_is_published_by_an_open_application_alone(app):
    with pytest.raises(Invariant, match="not open"):
        await app.publish("paid")


def test_sync_code_publishes_too(app):
    app.publish_sync("paid", [1])
    with app:
        app.publish_sync("paid", [2])


async def test_publishing_must_not_block_a_loop(app):
    async with app:
        with pytest.raises(Invariant, match="would block"):
            app.publish_sync("paid")
