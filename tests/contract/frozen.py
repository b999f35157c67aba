"""Databases whose `now()` stands still: a schema in front of `pg_catalog` answers from a table instead of the clock."""

from __future__ import annotations

import uuid

import asyncpg

from tests.support.servers import Server
from ultijobs.postgres.migrate import migrate

_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp")
_TEMPLATE = "standing_template"


class FrozenDatabases:
    """Makes migrated databases from one template; the time of each is the row of its `standing.clock`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._made = False

    async def create(self) -> str:
        if not self._made:
            await self._make_template()
            self._made = True
        name = f"s_{uuid.uuid4().hex[:16]}"
        await self._admin(f"create database {name} template {_TEMPLATE}", _path(name))
        url = self._server.url(name)
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("update standing.clock set time = date_trunc('second', pg_catalog.now())")
        finally:
            await connection.close()
        return url

    async def drop(self, url: str) -> None:
        await self._admin(f"drop database if exists {url.rpartition('/')[2]} with (force)")

    async def _make_template(self) -> None:
        await self._admin(f"create database {_TEMPLATE}", _path(_TEMPLATE))
        url = self._server.url(_TEMPLATE)
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("create schema standing; create table standing.clock (time timestamptz not null)")
            await connection.execute("insert into standing.clock values (pg_catalog.now())")
            for name in _FUNCTIONS:
                await connection.execute(
                    f"create function standing.{name}() returns timestamptz language sql stable "
                    "as 'select time from standing.clock'"
                )
        finally:
            await connection.close()
        await migrate(url, "public")

    async def _admin(self, *statements: str) -> None:
        connection = await asyncpg.connect(self._server.url())
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


def _path(database: str) -> str:
    return f"alter database {database} set search_path = standing, pg_catalog, public"
