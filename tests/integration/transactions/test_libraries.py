"""What only one of the libraries has: Django's atomic blocks, autocommit, codecs, other databases."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import django.db
import psycopg
import pytest
import sqlalchemy
from psycopg.adapt import Loader
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tests.integration.transactions.callers import DjangoCaller
from tests.integration.transactions.conftest import Mail, send
from ultijobs import App
from ultijobs._tx.connections import execute_on
from ultijobs.errors import Invariant, JobDuplicate, OutboxNoTx


@pytest.fixture
async def in_django(pg_url, app):
    """Runs a function on a thread on which `django.db.connection` commits each statement, as in a plain view."""
    with ThreadPoolExecutor(1) as thread:
        loop = asyncio.get_running_loop()
        connection, close = await loop.run_in_executor(thread, DjangoCaller.opened, pg_url)
        await loop.run_in_executor(thread, lambda: connection.set_autocommit(True))
        yield lambda function: loop.run_in_executor(thread, function)
        await loop.run_in_executor(thread, close)


async def test_django_s_atomic_blocks_decide_from_the_innermost_out(in_django, stored):
    def breaking_off(mail: Mail) -> None:
        send.enqueue_sync(mail, tx=django.db.connection)
        raise KeyError

    def view() -> None:
        with django.db.transaction.atomic():
            send.enqueue_sync(Mail(to="kept"), tx=django.db.connection)
            with pytest.raises(KeyError), django.db.transaction.atomic():
                breaking_off(Mail(to="gone"))
            with pytest.raises(JobDuplicate):
                send.enqueue_many_sync([Mail(to="none"), Mail(to="kept")], tx=django.db.connection, on_conflict="error")
        with pytest.raises(KeyError), django.db.transaction.atomic():
            breaking_off(Mail(to="gone too"))

    await in_django(view)
    assert await stored() == ["kept"]


async def test_on_a_connection_that_commits_each_statement_many_are_still_one_whole(in_django, stored, pg_url):
    def view() -> None:
        send.enqueue_many_sync([Mail(to="a"), Mail(to="b")], tx=django.db.connection)
        with pytest.raises(JobDuplicate):
            send.enqueue_many_sync([Mail(to="c"), Mail(to="a")], tx=django.db.connection, on_conflict="error")

    await in_django(view)
    assert await stored() == ["a", "b"]
    async with await psycopg.AsyncConnection.connect(pg_url, autocommit=True) as connection:
        await send.enqueue_many([Mail(to="d"), Mail(to="e")], tx=connection)
        with pytest.raises(JobDuplicate):
            await send.enqueue_many([Mail(to="f"), Mail(to="a")], tx=connection, on_conflict="error")
    assert await stored() == ["a", "b", "d", "e"]


async def test_required_transactions_refuse_a_connection_that_commits_each_statement(in_django, pg_url, stored):
    required = App(jobs=[send], driver=pg_url, transactions="required")

    def view() -> None:
        with pytest.raises(OutboxNoTx):
            required.enqueue_sync(send, Mail(to="a"), tx=django.db.connection)
        with django.db.transaction.atomic():
            required.enqueue_sync(send, Mail(to="django"), tx=django.db.connection)

    await in_django(view)
    engine = create_async_engine(pg_url.replace("postgresql", "postgresql+asyncpg"), isolation_level="AUTOCOMMIT")
    async with required, engine.connect() as each:
        with pytest.raises(OutboxNoTx):
            await required.enqueue(send, Mail(to="b"), tx=each)
        async with await psycopg.AsyncConnection.connect(pg_url, autocommit=True) as connection:
            with pytest.raises(OutboxNoTx):
                await required.enqueue(send, Mail(to="c"), tx=connection)
            async with connection.transaction():
                await required.enqueue(send, Mail(to="psycopg"), tx=connection)
    await engine.dispose()
    assert await stored() == ["django", "psycopg"]


async def test_codecs_and_row_factories_of_a_psycopg_connection_do_not_matter(app, pg_url):
    class Shouting(Loader):
        def load(self, data: object) -> str:
            return bytes(data).decode().upper() + "!"

    async with await psycopg.AsyncConnection.connect(pg_url, row_factory=psycopg.rows.scalar_row) as connection:
        for name in ("text", "json", "uuid"):
            connection.adapters.register_loader(name, Shouting)
        row = await send.enqueue(Mail(to="a"), tx=connection)
        again = await send.enqueue(Mail(to="a"), tx=connection)
    assert (again.id, again.deduped) == (row.id, True)


async def test_a_savepoint_is_set_also_where_the_transaction_was_begun_by_hand(app, pg_url, stored):
    connection = await asyncpg.connect(pg_url)
    await connection.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await connection.execute("begin")
    await send.enqueue(Mail(to="a"), tx=connection)
    with pytest.raises(JobDuplicate):
        await send.enqueue_many([Mail(to="b"), Mail(to="a")], tx=connection, on_conflict="error")
    await connection.execute("commit")
    await connection.close()
    assert await stored() == ["a"]


async def test_a_scoped_session_and_a_pooled_connection_are_joined(app, pg_url, stored):
    engine = sqlalchemy.create_engine(pg_url.replace("postgresql", "postgresql+psycopg"))
    sessions = sqlalchemy.orm.scoped_session(sqlalchemy.orm.sessionmaker(engine))

    def program() -> None:
        send.enqueue_sync(Mail(to="scoped"), tx=sessions)
        sessions.commit()
        sessions.remove()

    await asyncio.to_thread(program)
    engine.dispose()
    async with (
        asyncpg.create_pool(pg_url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        await send.enqueue(Mail(to="pooled"), tx=connection)
    assert await stored() == ["pooled", "scoped"]


async def test_a_session_on_another_database_system_is_refused(app):
    def program() -> None:
        session = sqlalchemy.orm.Session(sqlalchemy.create_engine("sqlite://"))
        with session, pytest.raises(Invariant, match="sqlite"):
            send.enqueue_sync(Mail(to="a"), tx=session)

    await asyncio.to_thread(program)


async def test_a_statement_of_ours_runs_on_any_connection(pg_url):
    statement = """select $1::text || '$1 %' as "a%$1", $2::text[] as many, $1::text as "$1" """
    engine = create_async_engine(pg_url.replace("postgresql", "postgresql+psycopg"))
    async with AsyncSession(engine) as session:
        (row,) = await execute_on(session, statement, ["x", ["y", None]])
        assert dict(row) == {"a%$1": "x$1 %", "many": ["y", None], "$1": "x"}
    await engine.dispose()
