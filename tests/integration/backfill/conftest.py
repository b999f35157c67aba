"""An application's own table of files, on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.support.eventually import eventually
from ultijobs import App, Worker
from ultijobs.inspection import BackfillRow, Inspector, PassRow

FILES = """
    create table files (id bigint primary key, path text not null, done boolean not null default false);
    insert into files select i, '/f/' || i from generate_series(1, 250) i;
"""


@pytest.fixture
async def files(pg_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(pg_url)
    await connection.execute(FILES)
    yield connection
    await connection.close()


async def run(app: App[Any]) -> None:
    """Runs what is due until nothing is."""
    await Worker(app, poll="0.1s").run_until_idle()


async def row_of(app: App[Any], name: str) -> BackfillRow:
    (found,) = [row for row in await Inspector(app.driver).backfills() if row.name == name]
    return found


async def passes_of(app: App[Any], name: str) -> list[PassRow]:
    return await Inspector(app.driver).passes(name=name)


async def until(app: App[Any], name: str, **facts: object) -> BackfillRow:
    """The backfill once its row says all of `facts`."""

    async def look() -> BackfillRow | None:
        rows = [row for row in await Inspector(app.driver).backfills() if row.name == name]
        found = (row for row in rows if all(getattr(row, field) == value for field, value in facts.items()))
        return next(found, None)

    found = await eventually(look, that=f"{name} with {facts}")
    assert found is not None
    return found
