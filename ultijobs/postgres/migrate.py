"""Versioned, forward-only migrations, and the check that every opening of a driver makes.

A step and its row in `x_schema` commit together, so that a step that was interrupted has not happened.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import asyncpg

from ultijobs._release import release
from ultijobs.errors import SchemaOutdated
from ultijobs.postgres.cluster import EmbeddedServer
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.faults import translated
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["Migration", "applied", "check", "migrate", "migrations", "target"]

_FILE: Final = re.compile(r"(\d{4})_\w+\.sql")
_COMPATIBLE: Final = re.compile(r"^-- compatible-from: (\d+)$", re.MULTILINE)
_LOCK_TRIES: Final = 20
_LOCK_TIMEOUT: Final = "1s"
_TURN_TIMEOUT: Final = "120s"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. `compatible_from` is the oldest release's schema version whose code works on the result."""

    version: int
    name: str
    compatible_from: int
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """The steps that this release carries, oldest first."""
    found: list[Migration] = []
    for file in (files("ultijobs.postgres") / "migrations").iterdir():
        named = _FILE.fullmatch(file.name)
        if named is None:
            continue
        text = file.read_text(encoding="utf-8")
        number = int(named[1])
        compatible = _COMPATIBLE.search(text)
        found.append(Migration(number, file.name, int(compatible[1]) if compatible else number, text))
    return tuple(sorted(found, key=lambda step: step.version))


def target() -> int:
    """The schema version that this release is written for."""
    return migrations()[-1].version


SCHEMA_EXISTS: Final = "select exists (select from pg_catalog.pg_namespace where nspname = $1)"
TABLES_EXIST: Final = """\
select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = $1 and c.relname = 'x_schema')"""
APPLIED: Final = "select version, compatible_from, library from {schema}.x_schema order by version"
TAKE_TURN: Final = "select pg_advisory_xact_lock(hashtextextended('ultijobs:migrate:' || $1::text, 0))"
SET_LOCAL: Final = "select set_config($1, $2, true)"
NOTE: Final = "insert into {schema}.x_schema (version, compatible_from, library) values ($1, $2, $3)"


async def applied(connection: Connection[Record], sql: Sql) -> Mapping[int, int]:
    """Version to `compatible_from` of each step that the database has; empty without tables."""
    if not await connection.fetchval(TABLES_EXIST, sql.schema):
        return {}
    return {row["version"]: row["compatible_from"] for row in await connection.fetch(sql(APPLIED))}


async def check(connection: Connection[Record], schema: str) -> int:
    """The schema's version. Raises `SchemaOutdated` when this release cannot work on it.

    A newer schema is accepted when it says that this release's code still fits.
    """
    sql = Sql(schema)
    wanted = target()
    try:
        steps = await applied(connection, sql)
    except asyncpg.InsufficientPrivilegeError as refusal:
        raise SchemaOutdated(
            f"schema {sql.quoted} cannot be read by this role: {refusal}",
            fix=f"grant usage on schema {sql.quoted} and its tables to the role that connects",
        ) from refusal
    if not steps:
        raise SchemaOutdated(
            f"schema {sql.quoted} has no tables of ultijobs (version 0); this release is written for version {wanted}",
            fix=_fix(schema),
            meta={"database": 0, "release": wanted},
        )
    have = max(steps)
    facts = {"database": have, "release": wanted}
    if have < wanted:
        raise SchemaOutdated(
            f"schema {sql.quoted} is at version {have}, and this release is written for version {wanted}",
            fix=_fix(schema),
            meta=facts,
        )
    if have > wanted and steps[have] > wanted:
        raise SchemaOutdated(
            f"schema {sql.quoted} is at version {have}, which needs a release of version {steps[have]} or later; "
            f"this one is written for version {wanted}",
            fix="upgrade ultijobs on this machine; `ultijobs migrate` never goes back",
            meta=facts,
        )
    return have


async def migrate(url: str, schema: str = "public") -> list[int]:
    """Applies every step that the database lacks and answers their versions; an empty list when it lacks none.

    `url` may be `embedded:DIR`: its server runs for the time of it, unless others use it too.
    Safe on a live database and from several places at once: one applies, the others wait and find it done. A crash
    leaves whole steps behind, never half of one. Raises `SchemaOutdated` when the role may not create tables or when
    the schema is newer than this release can work with, `DriverUnavailable` when the database does not answer.
    """
    if url.startswith("embedded:"):
        server = EmbeddedServer(url.removeprefix("embedded:"))
        try:
            return await migrate(await asyncio.to_thread(server.start), schema)
        finally:
            await asyncio.to_thread(server.stop)
    sql = Sql(schema)
    dsn = Dsn.parse(url)
    with translated(dsn):
        connection = await asyncpg.connect(**dsn.connect_arguments("migrate"), timeout=10)
    try:
        with translated(dsn):
            done = [step.version for step in migrations() if await _apply(connection, sql, step)]
            await check(connection, schema)
    finally:
        await connection.close(timeout=5)
    return done


async def _apply(connection: Connection[Record], sql: Sql, step: Migration) -> bool:
    for attempt in range(1, _LOCK_TRIES + 1):
        try:
            return await _apply_once(connection, sql, step)
        except asyncpg.LockNotAvailableError as busy:
            if attempt == _LOCK_TRIES:
                raise SchemaOutdated(
                    f"{step.name} waited {_LOCK_TRIES} times for a table that another session holds: {busy}",
                    fix="end the long transaction (`select pid, query from pg_stat_activity`), then `ultijobs migrate`",
                ) from busy
            await asyncio.sleep(0.1 * attempt)
        except asyncpg.InsufficientPrivilegeError as refusal:
            raise SchemaOutdated(
                f"this role may not apply {step.name} in schema {sql.quoted}: {refusal}",
                fix=f"run `ultijobs migrate` as a role that may create in schema {sql.quoted}",
            ) from refusal
    return False


async def _apply_once(connection: Connection[Record], sql: Sql, step: Migration) -> bool:
    async with connection.transaction():
        await connection.fetchval(SET_LOCAL, "statement_timeout", _TURN_TIMEOUT)
        await connection.fetchval(TAKE_TURN, sql.schema)
        if not await connection.fetchval(SCHEMA_EXISTS, sql.schema):
            await connection.execute(f"create schema {sql.quoted}")
        have = await applied(connection, sql)
        if have and max(have) >= step.version:
            return False
        await connection.fetchval(SET_LOCAL, "lock_timeout", _LOCK_TIMEOUT)
        await connection.execute(sql(step.sql))
        await connection.execute(sql(NOTE), step.version, step.compatible_from, release())
        return True


def _fix(schema: str) -> str:
    return "ultijobs migrate" if schema == "public" else f"ultijobs migrate --schema {schema}"
