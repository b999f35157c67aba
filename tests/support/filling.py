"""An application with a backfill of a hundred pages; each page that is handled is told apart by its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import asyncpg

from ultijobs import App, BatchSource, Context, RetryPolicy, backfill

HANDLED = "insert into handled (first, size, pid, attempt) values ($1, $2, $3, $4)"
DONE = "update items set done = true where id = any($1::bigint[])"
STOPPED = "insert into stopped default values"
STOPS_AT = int(os.environ.get("STOPS_AT", "0"))
"""The first row of the page in which this process stands still behind 60 rows, for a test to kill it there."""


async def left() -> int:
    connection = await asyncpg.connect(os.environ["FX_URL"])
    try:
        return int(await connection.fetchval("select count(*) from items where not done"))
    finally:
        await connection.close()


@backfill(
    BatchSource.table("items", key="id", where="not done"),
    tenant="none",
    batch=100,
    rate=1_000,
    count=left,
    retry=RetryPolicy(attempts=3, delay="100ms", jitter=False),
)
async def fill(rows: Sequence[dict[str, Any]], ctx: Context[None]) -> None:
    connection = await asyncpg.connect(os.environ["FX_URL"])
    try:
        first = rows[0]["id"]
        await connection.execute(HANDLED, first, len(rows), os.getpid(), ctx.attempt)
        keys = [row["id"] for row in rows]
        if first == STOPS_AT:
            await connection.execute(DONE, keys[:60])
            await connection.execute(STOPPED)
            await asyncio.sleep(600)
        await connection.execute(DONE, keys)
    finally:
        await connection.close()


app = App(jobs=[fill])
