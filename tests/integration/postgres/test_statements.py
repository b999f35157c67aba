from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import asyncpg
import pytest

import ultijobs.postgres
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.place import Place
from ultijobs.postgres.sql import Sql

STATEMENT = re.compile(r"\s*(with|select|insert|update|delete)\b", re.IGNORECASE)


def statements() -> Iterator[tuple[str, str]]:
    """Every upper-case text constant of the driver that is a whole statement; parts of statements begin with `_`."""
    for module in pkgutil.iter_modules(ultijobs.postgres.__path__):
        namespace = vars(importlib.import_module(f"ultijobs.postgres.{module.name}"))
        for name, value in namespace.items():
            if name.isupper() and not name.startswith("_") and isinstance(value, str) and STATEMENT.match(value):
                yield f"{module.name}.{name}", value


ALL = dict(statements())


def test_statements_are_found():
    assert {"jobs.ENQUEUE", "claims.CLAIM", "settlements.ACK", "leases.REAP", "steps.RECORD"} <= set(ALL)


@pytest.fixture(scope="module")
def module_url(pg):
    url = pg.create()
    yield url
    pg.drop(url)


@pytest.mark.parametrize("name", sorted(ALL))
async def test_every_statement_is_understood_by_a_migrated_database(module_url, name):
    connection = await asyncpg.connect(module_url)
    try:
        prepared = await connection.prepare(Sql("public")(ALL[name]))
        assert prepared.get_attributes() is not None
    finally:
        await connection.close()


async def test_no_statement_makes_asyncpg_ask_about_types(module_url, monkeypatch):
    async def asked(*_: object) -> None:
        raise AssertionError("a statement takes or returns a type that the connection was not told about")

    connection = await Place(Dsn.parse(module_url)).connect()
    monkeypatch.setattr(asyncpg.connection.Connection, "_introspect_types", asked)
    try:
        for name, statement in ALL.items():
            assert await connection.prepare(Sql("public")(statement)), name
    finally:
        await connection.close()
