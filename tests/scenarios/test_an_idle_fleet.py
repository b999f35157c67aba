"""What ten workers cost a database on which nothing happens."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.scenarios.conftest import LATE, Ground, calm, p95
from ultijobs import App

WORKERS = 10
SECONDS = 60
UPDATES = (
    "select relname, n_tup_ins + n_tup_upd + n_tup_del as writes from pg_stat_user_tables where relname <> 'x_workers'"
)


@pytest.mark.timeout(300)
async def test_an_idle_fleet_asks_twice_a_second_and_writes_only_heartbeats(ground: Ground, here: App[Any]) -> None:
    workers = [
        await ground.worker(f"w{number}", lease="30s", poll="1s", grace="25s", concurrency=20)
        for number in range(WORKERS)
    ]
    await asyncio.sleep(15)
    written, said = await writes(ground), await statements(ground)
    await asyncio.sleep(SECONDS)
    asked = await statements(ground) - said
    assert asked <= 2 * 1.2 * WORKERS * SECONDS, f"{asked / WORKERS / SECONDS:.2f} statements a worker and second"
    assert await writes(ground) == written
    assert p95([await ground.latency(str(number)) for number in range(40)]) <= 0.1 + LATE
    calm(*workers)


async def writes(ground: Ground) -> dict[str, int]:
    return {row["relname"]: row["writes"] for row in await ground.fetch(UPDATES)}


async def statements(ground: Ground) -> int:
    """How many statements this database has been sent."""
    try:
        await ground.fetch("create extension if not exists pg_stat_statements")
    except asyncpg.FeatureNotSupportedError:
        pytest.skip("this PostgreSQL comes without pg_stat_statements")
    counted = (
        "select sum(calls)::int as n from pg_stat_statements s join pg_database d on d.oid = s.dbid "
        "where d.datname = current_database()"
    )
    return int((await ground.fetch(counted))[0]["n"])
