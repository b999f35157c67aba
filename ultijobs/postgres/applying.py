"""One migration step onto one database: one process at a time, whole or not at all, in nobody's way for long.

A step and its row in `x_schema` commit together. A step of concurrent indexes cannot be a transaction: it is noted when
all of it is there, and until then made again, index by index, where it was broken off.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import asyncpg

from ultijobs._release import release
from ultijobs.errors import Invariant, RightsMissing, SchemaOutdated
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["Migration", "applied", "apply"]

_LOCK_TRIES: Final = 40
_LOCK_TIMEOUT: Final = "200ms"
"""Whoever comes behind a step that waits for a lock waits with it."""
_LOCK_PAUSE: Final = 0.5
_TURN_WITHIN: Final = 600.0
_TURN_EVERY: Final = 0.1
_INDEX: Final = re.compile(
    r"(?:create (?:unique )?index concurrently if not exists|drop index concurrently if exists) (?:\{schema\}\.)?(\w+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. `compatible_from` is the oldest release's schema version whose code works on the result.

    A step that says `concurrently` is nothing but `create index concurrently if not exists` and its like for dropping.
    """

    version: int
    name: str
    compatible_from: int
    sql: str
    concurrently: bool = False

    def statements(self) -> Iterator[tuple[str, str]]:
        """Of a concurrent step: the name of each index and its statement."""
        text = "\n".join(line for line in self.sql.splitlines() if not line.lstrip().startswith("--"))
        for statement in filter(None, (part.strip() for part in text.split(";"))):
            named = _INDEX.match(statement)
            if named is None:
                raise Invariant(
                    f"{self.name}: {statement[:60]!r} is no concurrent index", fix="move it to another step"
                )
            yield named[1], statement


SCHEMA_EXISTS: Final = "select exists (select from pg_catalog.pg_namespace where nspname = $1)"
TABLES_EXIST: Final = """\
select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = $1 and c.relname = 'x_schema')"""
APPLIED: Final = "select version, compatible_from, library from {schema}.x_schema order by version"
# Tried, not waited for: a statement that waits holds a snapshot, for whose end a concurrent index would wait in turn.
TRY_TURN: Final = "select pg_try_advisory_xact_lock(hashtextextended('ultijobs:migrate:' || $1::text, 0))"
SET_LOCAL: Final = "select set_config($1, $2, true)"
NOTE: Final = "insert into {schema}.x_schema (version, compatible_from, library) values ($1, $2, $3)"
INVALID: Final = """\
select exists (select from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
                 join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = $1 and c.relname = $2 and not i.indisvalid)"""


async def applied(connection: Connection[Record], sql: Sql) -> Mapping[int, int]:
    """Version to `compatible_from` of each step that the database has; empty without tables."""
    if not await connection.fetchval(TABLES_EXIST, sql.schema):
        return {}
    return {row["version"]: row["compatible_from"] for row in await connection.fetch(sql(APPLIED))}


async def apply(connection: Connection[Record], dsn: Dsn, sql: Sql, step: Migration) -> bool:
    """Applies the step unless the database has it; False then. Raises `SchemaOutdated` when it cannot be done."""
    deadline = time.monotonic() + _TURN_WITHIN
    attempt = 0
    while True:
        try:
            done = await _in_turn(connection, dsn, sql, step)
            if done is not None:
                return done
            if time.monotonic() > deadline:
                raise SchemaOutdated(
                    f"another process migrates schema {sql.quoted} since {_TURN_WITHIN:g} s; {step.name} waits for it",
                    fix="wait for it, then `ultijobs migrate`",
                )
            await asyncio.sleep(_TURN_EVERY)
        except asyncpg.LockNotAvailableError as busy:
            attempt += 1
            if attempt == _LOCK_TRIES:
                raise SchemaOutdated(
                    f"{step.name} waited {_LOCK_TRIES} times for a table that another session holds: {busy}",
                    fix="end the long transaction (`select pid, query from pg_stat_activity`), then `ultijobs migrate`",
                ) from busy
            await asyncio.sleep(_LOCK_PAUSE * random.uniform(0.8, 1.2))  # noqa: S311 - keeps processes apart
        except asyncpg.InsufficientPrivilegeError as refusal:
            raise RightsMissing(
                f"this role may not apply {step.name} in schema {sql.quoted}: {refusal}",
                fix=f"run `ultijobs migrate` as a role that may create in schema {sql.quoted}",
            ) from refusal


async def _in_turn(connection: Connection[Record], dsn: Dsn, sql: Sql, step: Migration) -> bool | None:
    """True when it was applied, False when it was there, None while it is another's turn."""
    # A stronger isolation would hold a snapshot, for whose end our own indexes would wait.
    async with connection.transaction(isolation="read_committed"):
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            await connection.fetchval(SET_LOCAL, limit, "0")
        if not await connection.fetchval(TRY_TURN, sql.schema):
            return None
        if not await connection.fetchval(SCHEMA_EXISTS, sql.schema):
            await connection.execute(f"create schema {sql.quoted}")
        have = await applied(connection, sql)
        if have and max(have) >= step.version:
            return False
        if step.concurrently:
            # Ends the portal of the statement before, which would hold a snapshot until the end of the transaction.
            await connection.execute("select 1")
            await _indexes(dsn, sql, step)
        else:
            await connection.fetchval(SET_LOCAL, "lock_timeout", _LOCK_TIMEOUT)
            await connection.execute(sql(step.sql))
        await connection.execute(sql(NOTE), step.version, step.compatible_from, release())
        return True


async def _indexes(dsn: Dsn, sql: Sql, step: Migration) -> None:
    """On a connection beside the one that holds the turn; each waits for older transactions, and nobody for it."""
    connection = await asyncpg.connect(**dsn.connect_arguments("migrate"), timeout=10)
    try:
        await connection.execute("set statement_timeout = 0; set lock_timeout = 0")
        for name, statement in step.statements():
            if await connection.fetchval(INVALID, sql.schema, name):
                await connection.execute(f'drop index concurrently if exists {sql.quoted}."{name}"')
            await connection.execute(sql(statement))
    finally:
        await connection.close(timeout=5)
