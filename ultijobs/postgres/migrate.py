"""Versioned, forward-only migrations, and the check that every opening of a driver makes."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import asyncpg

from ultijobs.errors import RightsMissing, SchemaOutdated
from ultijobs.postgres.applying import Migration, applied, apply
from ultijobs.postgres.cluster import EmbeddedServer
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.faults import translated
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["Migration", "applied", "check", "migrate", "migrations", "target"]

_FILE: Final = re.compile(r"(\d{4})_\w+\.sql")
_COMPATIBLE: Final = re.compile(r"^-- compatible-from: (\d+)$", re.MULTILINE)
_CONCURRENTLY: Final = re.compile(r"^-- concurrently$", re.MULTILINE)


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
        since = int(compatible[1]) if compatible else number
        found.append(Migration(number, file.name, since, text, _CONCURRENTLY.search(text) is not None))
    return tuple(sorted(found, key=lambda step: step.version))


def target() -> int:
    """The schema version that this release is written for."""
    return migrations()[-1].version


async def check(connection: Connection[Record], schema: str) -> int:
    """The schema's version. Raises `SchemaOutdated` when this release cannot work on it.

    A newer schema is accepted when it says that this release's code still fits.
    """
    sql = Sql(schema)
    wanted = target()
    try:
        steps = await applied(connection, sql)
    except asyncpg.InsufficientPrivilegeError as refusal:
        raise RightsMissing(f"schema {sql.quoted} cannot be read by this role: {refusal}") from refusal
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
            done = [step.version for step in migrations() if await apply(connection, dsn, sql, step)]
            await check(connection, schema)
    finally:
        await connection.close(timeout=5)
    return done


def _fix(schema: str) -> str:
    return "ultijobs migrate" if schema == "public" else f"ultijobs migrate --schema {schema}"
