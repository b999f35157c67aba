"""An actor is recorded, and one of another tenant stores nothing, whichever way an enqueue takes."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from pydantic import BaseModel

from ultijobs import Actor, App, job
from ultijobs.errors import TenantMismatch

OURS, THEIRS = Actor("user:7", tenant="acme"), Actor("user:8", tenant="globex")


class Order(BaseModel):
    id: int
    org: str = "acme"


@job(Order, idempotency_key=lambda i: str(i.id), tenant=lambda i: i.org)
async def ship(input: Order) -> None: ...


@pytest.mark.parametrize("staged", [False, True], ids=["in the queue", "in the outbox"])
async def test_an_actor_of_another_tenant_stores_nothing_whichever_way_it_enqueues(pg_url, staged):
    outbox = pg_url if staged else None
    async with App(jobs=[ship], driver=pg_url, outbox=outbox) as app:
        connection = await asyncpg.connect(pg_url)
        mixed = [Order(id=1), Order(id=2, org="globex"), Order(id=3)]
        async with connection.transaction():
            for asking in (
                ship.enqueue(Order(id=1), actor=THEIRS),
                ship.enqueue(Order(id=1), actor=THEIRS, tx=connection),
                ship.enqueue_many(mixed, actor=OURS),
                ship.enqueue_many(mixed, actor=THEIRS, tx=connection),
                app.enqueue(ship, Order(id=1), actor=THEIRS),
                asyncio.to_thread(ship.enqueue_sync, Order(id=1), actor=THEIRS),
                asyncio.to_thread(ship.enqueue_many_sync, mixed, actor=OURS),
            ):
                with pytest.raises(TenantMismatch):
                    await asking
        stored = "select (select count(*) from x_jobs) + (select count(*) from x_outbox)"
        assert await connection.fetchval(stored) == 0
        await ship.enqueue_many([Order(id=4), Order(id=5)], actor=OURS)
        async with connection.transaction():
            await ship.enqueue(Order(id=6), actor=Actor("user:9"), tx=connection)
        rows = await connection.fetch(
            "select enqueued_by, tenant_id from x_jobs union all select enqueued_by, tenant_id from x_outbox order by 1"
        )
        assert [tuple(row) for row in rows] == [("user:7", "acme"), ("user:7", "acme"), ("user:9", "acme")]
        await connection.close()
