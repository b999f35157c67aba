"""What the hot statements touch, in buffers and rows, whatever lies beside the rows they want."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.integration.postgres.large import SETTINGS, large_databases
from tests.support.servers import Server
from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob
from ultijobs.postgres import attention, claims, fates, filing, jobs, leases, settlements, steps, streams
from ultijobs.postgres.sql import Sql

MANY = 25_000
HELD = 300
SLOTS = 30
LANES = 1_000
SQL = Sql("public")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
LOWEST = UUID(int=0)

FILL = f"""
insert into x_jobs (id, run_id, name, queue, priority, state, run_at, input, idempotency_key, finished_at,
                    stop_reason, lane)
select gen_random_uuid(), gen_random_uuid(), name, 'default', priority, state,
       now() + due + i * interval '1 ms', '{{"a": 1}}', md5(i::text || name),
       case when state = 'dead' then now() end, case when state = 'dead' then 'terminal' end, lane
  from generate_series(1, {MANY}) i,
       (values ('send', 0, 'ready', interval '-1 day', ''), ('future', 9, 'ready', interval '1 day', ''),
               ('unknown', 0, 'ready', interval '-2 days', 'n:unknown'), ('send', 3, 'dead', interval '-1 day', ''),
               ('capped', 0, 'ready', interval '-2 days', 'n:capped')
       ) kind(name, priority, state, due, lane);
insert into x_jobs_done (id, run_id, name, state, input, finished_at, lease_no)
select gen_random_uuid(), gen_random_uuid(), 'send', 'done', '{{}}', now(), i from generate_series(1, {MANY}) i;
insert into x_job_steps (run_id, name, status, position, lease_no, output)
select gen_random_uuid(), 'one', 'completed', 0, i, '1' from generate_series(1, {MANY}) i;
"""
HOLD = f"""
update x_jobs set state = 'running', lease_no = nextval('x_lease_no'), lease_until = now() + interval '1 h'
 where id in (select id from x_jobs where name = 'send' and state = 'ready' order by run_at limit {HELD})
"""
TENANTS = f"""
insert into x_jobs (id, run_id, name, queue, run_at, input, tenant_id, lane)
select gen_random_uuid(), gen_random_uuid(), 'serve', 'tenants', now() - interval '1 day' + i * interval '1 ms', 'null',
       to_char(i % {LANES}, 'FM0000'), 't:' || to_char(i % {LANES}, 'FM0000')
  from generate_series(1, {MANY}) i;
insert into x_job_slots (lane, slot) select 'n:capped', i from generate_series(0, {SLOTS} - 1) i;
"""


@pytest.fixture(scope="module")
def large_urls(pg: Server) -> Iterator[dict[str, str]]:
    with large_databases(pg, ["x_jobs"], FILL, TENANTS, afterwards=HOLD) as urls:
        yield urls


@pytest.fixture(
    params=[("analysed", "generic"), ("analysed", "custom"), ("analysed", "auto"), ("never analysed", "generic")],
    ids="-".join,
)
async def connection(large_urls: dict[str, str], request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    """The settings of our own connections on any table; those of a pooler's on one that has statistics."""
    state, settings = request.param
    connection = await asyncpg.connect(large_urls[state], server_settings=SETTINGS[settings])
    yield connection
    await connection.close()


class Cost:
    """Buffers of the whole statement, and the most rows that any scan of x_jobs read, kept or not."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        self.rows = max((self._read(node) for node in self._nodes(plan) if self._reads_jobs(node)), default=0)

    def _nodes(self, node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for child in node.get("Plans", []):
            yield from self._nodes(child)

    def _reads_jobs(self, node: dict[str, Any]) -> bool:
        return "Scan" in node["Node Type"] and str(node.get("Relation Name", "")).startswith("x_job")

    def _read(self, node: dict[str, Any]) -> int:
        rows = (
            node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        )
        return round(rows * node["Actual Loops"])


async def cost(connection: asyncpg.Connection, statement: str, *arguments: object) -> Cost:
    """Runs it for real inside of a transaction that is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        text = await connection.fetchval(f"explain (analyze, buffers, format json) {SQL(statement)}", *arguments)
    finally:
        await transaction.rollback()
    return Cost(json.loads(text)[0]["Plan"])


async def held(connection: asyncpg.Connection) -> tuple[list[UUID], list[int]]:
    rows = await connection.fetch("select id, lease_no from x_jobs where state = 'running' order by id limit 100")
    return [row["id"] for row in rows], [row["lease_no"] for row in rows]


def claim_arguments(names: list[str], limit: int = 50, ranks: tuple[int, ...] = (-9, 0)) -> tuple[object, ...]:
    n = len(ranks)
    return (
        "w", ["default"], [limit], ["default"] * n, [""] * n, list(ranks), [LONG_AGO] * n, [LOWEST] * n, [limit] * n,
        [False] * n, names, [], [], limit, timedelta(seconds=30),
    )  # fmt: skip


async def test_a_claim_reads_what_it_takes(connection):
    spent = await cost(connection, claims.CLAIM, *claim_arguments(["send"]))
    assert spent.rows <= 200
    assert spent.buffers < 6_000


def capped_arguments(lanes: list[str], most: int = 50) -> tuple[object, ...]:
    n = len(lanes)
    names = [lane.removeprefix("n:") if lane.startswith("n:") else None for lane in lanes]
    return (
        "w", ["default"], [50], ["default"] * n, lanes, [0] * n, [LONG_AGO] * n, [LOWEST] * n, [most] * n,
        [False] * n, ["send"], [], [], 50, timedelta(seconds=30), names, ["capped"], [SLOTS],
    )  # fmt: skip


async def test_a_claim_with_slots_reads_what_it_takes_and_the_slots(connection):
    spent = await cost(connection, claims.CLAIM_CAPPED, *capped_arguments(["n:capped", ""]))
    assert spent.rows <= 300
    assert spent.buffers < 6_000


async def test_a_claim_reads_nothing_of_a_name_that_is_at_its_cap(connection):
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("update x_job_slots set job_id = gen_random_uuid(), lease_no = 0")
    plan = f"explain (analyze, buffers, format json) {SQL(claims.CLAIM_CAPPED)}"
    spent = Cost(json.loads(await connection.fetchval(plan, *capped_arguments(["n:capped"])))[0]["Plan"])
    await transaction.rollback()
    assert spent.rows <= 2 * SLOTS
    assert spent.buffers < 200


async def test_a_scan_steps_over_each_lane_however_many_rows_it_has(connection):
    queues, behind = ["tenants"], [("", -(2**31)), ("t:0500", 0)]
    for lane, rank in behind:
        spent = await cost(connection, streams.STREAMS, queues, [lane], [rank], [100])
        assert spent.rows <= 110
        assert spent.buffers < 900


async def test_filing_looks_at_the_heads_of_streams(connection):
    spent = await cost(connection, filing.FILE, ["default"], ["capped", "send"], ["n:unknown"], [])
    assert spent.rows <= 8_000
    assert spent.buffers < 40_000
    spent = await cost(connection, filing.FILE, ["default", "tenants"], [], [], [])
    assert spent.rows <= 2_000, "without caps it looks for lanes alone"
    spent = await cost(connection, filing.FILE, ["tenants"], [], [], ["tenants"])
    assert spent.rows <= 2_000, "lanes of tenants need no look"


async def test_a_claim_that_finds_nothing_due_reads_nothing(connection):
    spent = await cost(connection, claims.CLAIM, *claim_arguments(["nobody"], ranks=(-9,)))
    assert spent.rows <= 5
    assert spent.buffers < 60


async def test_a_scan_costs_the_number_of_streams(connection):
    spent = await cost(
        connection, streams.STREAMS, ["default", "empty", "other"], [""] * 3, [-(2**31)] * 3, [1_000] * 3
    )
    assert spent.rows <= 20
    assert spent.buffers < 200


async def test_a_look_ahead_is_bounded(connection):
    spent = await cost(
        connection, claims.NEXT_DUE, ["default"], [""], [0], [LONG_AGO], [LOWEST], ["nobody"], 200
    )  # fmt: skip
    assert spent.rows <= 200
    assert spent.buffers < 1_000


@pytest.mark.parametrize("statement", ["ACK", "ACK_RELEASING"])
async def test_an_acknowledgement_reads_its_rows(connection, statement):
    spent = await cost(connection, getattr(settlements, statement), *(await held(connection)))
    assert spent.rows <= 100
    assert spent.buffers < 8_000


@pytest.mark.parametrize("state", ["ready", "suspended", "dead"])
async def test_any_other_settlement_reads_its_rows(connection, state):
    ids, lease_nos = await held(connection)
    n = len(ids)
    outcome = {"ready": "retried"}.get(state, state)
    spent = await cost(
        connection, settlements.STOP, ids, lease_nos, [outcome] * n, [state] * n, [timedelta(1)] * n, [None] * n,
        [None] * n, ["X"] * n, ["f"] * n, ["boom"] * n, [None] * n,
    )  # fmt: skip
    assert spent.rows <= 100
    assert spent.buffers < 12_000


async def test_a_renewal_reads_its_rows(connection):
    ids, lease_nos = await held(connection)
    n = len(ids)
    span = timedelta(seconds=30)
    said = (["s"] * n, [None] * n, [None] * n, [True] * n)
    plain = await cost(connection, leases.RENEW, ids, lease_nos, span, [False] * n, *said)
    telling = await cost(connection, leases.RENEW, ids, lease_nos, span, [True] * n, *said)
    assert max(plain.rows, telling.rows) <= 100
    assert max(plain.buffers, telling.buffers) < 6_000


async def test_looking_for_lapsed_leases_reads_what_runs_and_what_waits_behind_another(connection):
    spent = await cost(connection, leases.REAP, 100, ["send"], ["fixed"], [timedelta(1)], [timedelta(1)], [True])
    assert spent.rows <= HELD
    assert spent.buffers < 1_000


async def test_a_look_at_what_needs_a_hand_reads_what_runs_and_what_waits_behind_another(connection):
    spent = await cost(connection, attention.LOOK)
    assert spent.rows <= HELD
    assert spent.buffers < 1_000


async def test_steps_read_and_write_their_own(connection):
    ids, lease_nos = await held(connection)
    n = len(ids)
    write = await cost(
        connection, steps.RECORD, ids, lease_nos, ids, ["one"] * n, ["run"] * n, ["completed"] * n, [0] * n, ["1"] * n,
        [None] * n, [1] * n, [timedelta(0)] * n, [None] * n, [None] * n, [None] * n,
    )  # fmt: skip
    assert write.rows <= 100
    assert write.buffers < 6_000
    read = await cost(connection, steps.LOAD, ids)
    assert read.rows == 0
    assert read.buffers < 600


async def test_a_fate_is_looked_up_by_index(connection):
    ids, lease_nos = await held(connection)
    spent = await cost(connection, fates.FATES, ids, [lease_no - 1 for lease_no in lease_nos])
    assert spent.rows <= 100
    assert spent.buffers < 8_000


def _job(key: str) -> NewJob:
    return NewJob(id=new_id(), name="send", input="{}", idempotency_key=key)


async def test_an_enqueue_probes_the_key_alone(connection):
    for key in ("new", await connection.fetchval("select idempotency_key from x_jobs where state = 'ready' limit 1")):
        spent = await cost(connection, jobs.ENQUEUE, *jobs._texts(_job(key)), "hush")
        assert spent.rows <= 1
        assert spent.buffers < 300


@pytest.mark.parametrize("mode", ["live", "rerun"])
async def test_many_enqueues_probe_their_keys_alone(connection, mode):
    keys = await connection.fetch("select idempotency_key from x_jobs where state = 'ready' limit 50")
    columns = jobs.columns([_job(f"new{i}") for i in range(50)] + [_job(row[0]) for row in keys])
    columns[8] = [mode] * 100
    spent = await cost(connection, jobs.ENQUEUE_MANY, *columns, ["default"])
    assert spent.rows <= 100
    assert spent.buffers < 6_000
