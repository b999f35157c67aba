"""Handlers see the rows of their own tenant alone, held by Postgres, and `cross_tenant` is the one way out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import sqlalchemy
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tests.integration.transactions.callers import CALLERS
from ultijobs import App, Context, Worker, cross_tenant, current, job
from ultijobs._steps.guard import guard, guard_sync
from ultijobs.errors import Invariant

PATHS = "select string_agg(path, ' ' order by path) from files"


class Org(BaseModel):
    org: str


SEEN: dict[str, Any] = {}


async def guarded_paths(ctx: Context[str]) -> str | None:
    """What the run sees through a connection of the application's own."""
    connection = await asyncpg.connect(ctx.services)
    try:
        async with connection.transaction():
            await connection.execute("set local role shop_app")
            await ctx.guard(connection)
            return await connection.fetchval(PATHS)
    finally:
        await connection.close()


@job(Org, idempotency_key=lambda i: i.org, tenant=lambda i: i.org)
async def index(input: Org, ctx: Context[str]) -> None:
    SEEN[input.org] = await guarded_paths(ctx)


@job(Org, idempotency_key=lambda i: i.org, tenant=lambda i: i.org)
async def report(input: Org, ctx: Context[str]) -> None:
    before = await guarded_paths(ctx)
    with cross_tenant("the monthly report is over all tenants"):
        within = await guarded_paths(ctx)
    SEEN[f"report {input.org}"] = (before, within, await guarded_paths(ctx))


@job(Org, idempotency_key=lambda i: i.org, tenant="none")
async def of_nobody(ctx: Context[str]) -> None:
    SEEN["nobody"] = (ctx.tenant, await guarded_paths(ctx))


@pytest.fixture
def seen() -> dict[str, Any]:
    SEEN.clear()
    return SEEN


def application(url: str, *jobs: Any) -> App[str]:
    @asynccontextmanager
    async def services() -> AsyncIterator[str]:
        yield url

    return App(jobs=jobs, driver=url, lifespan=services)


async def test_a_handler_sees_the_rows_of_its_own_tenant_alone(guarded, seen):
    async with application(guarded, index) as app:
        await index.enqueue_many([Org(org="acme"), Org(org="globex"), Org(org="initech")])
        await Worker(app).run_until_idle()
    assert seen == {"acme": "/a/1 /a/2", "globex": "/g/1", "initech": None}


async def test_a_block_that_crosses_tenants_sees_all_and_only_while_it_lasts(guarded, seen):
    async with application(guarded, report) as app:
        await report.enqueue(Org(org="globex"))
        await Worker(app).run_until_idle()
    assert seen == {"report globex": ("/g/1", "/a/1 /a/2 /g/1", "/g/1")}


async def test_a_run_of_no_tenant_sees_nothing_by_itself(guarded, seen):
    async with application(guarded, of_nobody) as app:
        await of_nobody.enqueue(Org(org="acme"))
        await Worker(app).run_until_idle()
    assert seen == {"nobody": (None, None)}


async def test_one_listener_guards_every_session_of_sqlalchemy(guarded, seen):
    engine = create_async_engine(guarded.replace("postgresql", "postgresql+asyncpg"))

    class Guarded(sqlalchemy.orm.Session):
        pass

    @sqlalchemy.event.listens_for(Guarded, "after_begin")
    def tell(session: Any, transaction: Any, connection: Any) -> None:
        current().guard_sync(connection)

    @job(Org, idempotency_key=lambda i: i.org, tenant=lambda i: i.org)
    async def through_a_session(input: Org) -> None:
        async with AsyncSession(engine, sync_session_class=Guarded) as session:
            await session.execute(sqlalchemy.text("set local role shop_app"))
            seen[input.org] = (await session.execute(sqlalchemy.text(PATHS))).scalar()

    async with application(guarded, through_a_session) as app:
        await through_a_session.enqueue(Org(org="acme"))
        await Worker(app).run_until_idle()
    await engine.dispose()
    assert seen == {"acme": "/a/1 /a/2"}


@pytest.mark.parametrize("library", CALLERS, ids=lambda caller: caller.__name__)
async def test_the_connection_of_any_library_can_be_told(library, guarded):
    async with library.on(guarded) as caller:
        await caller.execute("select 1")
        if caller.sync:
            await caller.there(lambda: guard_sync(caller.tx, "acme"))
        else:
            await guard(caller.tx, "acme")
        await caller.execute("set local role shop_app")
        assert await caller.execute(PATHS) == "/a/1 /a/2"
        await caller.rollback()
        # A connection that goes back to a pool tells the next one nothing.
        assert (await caller.execute("select current_setting('ultijobs.tenant', true)")) in {None, ""}
        await caller.rollback()


async def test_what_is_no_open_transaction_cannot_be_told(guarded):
    connection = await asyncpg.connect(guarded)
    try:
        with pytest.raises(Invariant, match="no transaction is open"):
            await guard(connection, "acme")
        with pytest.raises(Invariant, match=r"asyncpg\.connection\.Connection is not a transaction of sync code"):
            guard_sync(connection, "acme")
    finally:
        await connection.close()
