"""A database whose `now()` stands still: the function itself is replaced by one that reads a table."""

from __future__ import annotations

import asyncpg

from tests.support.servers import Server, blocking

_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp")
_STANDING = """
create schema standing;
create table standing.clock (time timestamptz not null);
insert into standing.clock values (date_trunc('second', pg_catalog.now()));
create function standing.time() returns timestamptz language sql stable as 'select time from standing.clock';
"""
# The planner puts the body in place of each call; a call that it left would still reach the server's own clock.
_REPLACED = """
create or replace function pg_catalog.{name}() returns timestamptz language sql stable as 'select standing.time()';
"""


def frozen_database(server: Server) -> str:
    """The URL of a migrated database; its time is the row of `standing.clock`."""
    url = server.create()
    blocking(_freeze(url))
    return url


async def _freeze(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_STANDING + "".join(_REPLACED.format(name=name) for name in _FUNCTIONS))
    finally:
        await connection.close()
