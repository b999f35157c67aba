"""A table of the application's own whose policy lets a role see the rows of the tenant that it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

POLICY = """
    create table files (tenant_id text not null, path text not null);
    insert into files values ('acme', '/a/1'), ('acme', '/a/2'), ('globex', '/g/1');
    do $$ begin create role shop_app nologin; exception when duplicate_object then null; end $$;
    grant select on files to shop_app;
    alter table files enable row level security;
    create policy own_tenant on files to shop_app using (
        tenant_id = current_setting('ultijobs.tenant', true)
        or current_setting('ultijobs.cross_tenant', true) <> ''
    );
"""


@pytest.fixture
async def guarded(pg_url: str) -> AsyncIterator[str]:
    """The URL of a database with such a table; its owner sees all of it, the role `shop_app` only what it may."""
    connection = await asyncpg.connect(pg_url)
    try:
        await connection.execute(POLICY)
        yield pg_url
    finally:
        await connection.execute("drop table files")
        await connection.close()
