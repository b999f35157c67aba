"""What a claim of the outbox reads, however much waits beside it and however little the planner knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ultijobs.postgres.outbox import CLAIM
from ultijobs.postgres.sql import Sql

MANY = 20_000
ONE_EACH = f"""
insert into x_outbox (id, run_id, name, tx_id)
select gen_random_uuid(), gen_random_uuid(), 'n', (i::text)::xid8 from generate_series(1, {MANY}) i"""
ALL_IN_ONE = f"""
insert into x_outbox (id, run_id, name)
select gen_random_uuid(), gen_random_uuid(), 'n' from generate_series(1, {MANY})"""
SENT = f"""
insert into x_outbox (id, run_id, name, published_at, set_aside_at)
select gen_random_uuid(), gen_random_uuid(), 'n', case when i % 2 = 0 then now() end, case when i % 2 = 1 then now() end
  from generate_series(1, {MANY}) i"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


@pytest.mark.parametrize("analysed", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("staged", [ONE_EACH, ALL_IN_ONE], ids=["small", "large"])
async def test_a_claim_reads_what_it_takes(connection, staged, analysed):
    await connection.execute("alter table x_outbox set (autovacuum_enabled = off)")
    for statement in (SENT, staged, *(["analyze x_outbox"] if analysed else [])):
        await connection.execute(statement)
    asked = Sql("public")(CLAIM)
    for place, value in (("$1::int", "100"), ("$2::text", "'r'"), ("$3::interval", "interval '30 s'")):
        asked = asked.replace(place, value)
    told = await connection.fetchval(f"explain (analyze, buffers, format json) {asked}")
    plan = json.loads(told)[0]["Plan"]
    assert plan["Actual Rows"] == 100
    read = max(
        node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in nodes(plan)
    )
    assert read <= 400
