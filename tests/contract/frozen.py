"""Databases whose `now()` stands still: each has the function itself replaced by one that reads a table."""

from __future__ import annotations

import uuid

import asyncpg

from tests.support.servers import Server

_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp")
_STANDING = """
create schema standing;
create table standing.clock (time timestamptz not null);
insert into standing.clock values (date_trunc('second', pg_catalog.now()));
create function standing.time() returns timestamptz language sql stable as 'select time from standing.clock';
"""
# The planner puts the body in place of each call; a call that it left would still reach the server's own clock.
_REPLACED = """
create or replace function pg_catalog.{name}() returns timestamptz language sql stable as 'select standing.time()'
"""


class FrozenDatabases:
    """Makes migrated databases from one template; the time of each is the row of its `standing.clock`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._template: str | None = None

    async def create(self) -> str:
        if self._template is None:
            self._template = await self._make_template()
        name = f"s_{uuid.uuid4().hex[:16]}"
        await self._run(self._server.url(), f"create database {name} template {self._template}")
        return self._server.url(name)

    async def drop(self, url: str) -> None:
        await self._run(self._server.url(), f"drop database if exists {url.rpartition('/')[2]} with (force)")

    async def _make_template(self) -> str:
        url = self._server.create()
        await self._run(url, _STANDING, *(_REPLACED.format(name=name) for name in _FUNCTIONS))
        return url.rpartition("/")[2]

    async def _run(self, url: str, *statements: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()
