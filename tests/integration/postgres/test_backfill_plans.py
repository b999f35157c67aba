"""What looking at backfills costs beside many jobs, and what a mark costs beside a long ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.large import SETTINGS, large_databases
from tests.integration.postgres.test_plans import cost
from tests.support.servers import Server
from ultijobs.postgres import backfills
from ultijobs.postgres.place import READING

MANY = 10_000
PASSES = 200
# Waiting, finished and stopped jobs of other names, and of the backfills' own; a pass of `fill` runs.
FILL = f"""
insert into x_jobs (id, run_id, name, state, idempotency_key, finished_at, stop_reason)
select gen_random_uuid(), gen_random_uuid(), name, state, name || i, case when state = 'dead' then now() end,
       case when state = 'dead' then 'terminal' end
  from generate_series(1, {MANY}) i, (values ('other', 'ready'), ('other', 'dead'), ('fill', 'dead')) v(name, state);
insert into x_jobs_done (id, run_id, name, state, finished_at, lease_no)
select md5(i::text)::uuid, md5(i::text)::uuid, 'fill', 'done', now(), i from generate_series(1, {MANY}) i;
insert into x_backfills (run_id, job_id, name, status, checksum, started_at)
select md5(i::text)::uuid, md5(i::text)::uuid, case when i % 2 = 0 then 'fill' else 'gone' end, 'completed', 'c',
       now() - i * interval '1 day'
  from generate_series(1, {PASSES}) i;
insert into x_jobs (id, run_id, name, state, idempotency_key, lease_no, lease_until)
values (md5('live')::uuid, md5('live')::uuid, 'fill', 'running', 'fill', 7, now() + interval '1 hour');
insert into x_backfills (run_id, job_id, name, status, checksum) values
  (md5('live')::uuid, md5('live')::uuid, 'fill', 'running', 'c');
"""


@pytest.fixture(scope="module")
def large_urls(pg: Server) -> Iterator[dict[str, str]]:
    with large_databases(pg, ["x_jobs", "x_backfills"], FILL) as urls:
        yield urls


@pytest.fixture(params=["analysed", "never analysed"])
async def reading(large_urls: dict[str, str], request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(large_urls[request.param], server_settings={**READING, "jit": "off"})
    yield connection
    await connection.close()


@pytest.fixture(params=[("analysed", "custom"), ("analysed", "auto"), ("never analysed", "generic")], ids="-".join)
async def writing(large_urls: dict[str, str], request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    state, settings = request.param
    connection = await asyncpg.connect(large_urls[state], server_settings=SETTINGS[settings])
    yield connection
    await connection.close()


async def test_a_survey_reads_the_jobs_of_the_passes_it_shows_and_no_others(reading: Any) -> None:
    spent = await cost(reading, backfills.SURVEY, ["fill", "never ran"])
    assert spent.rows <= 20
    assert spent.buffers < 600


async def test_a_page_of_the_ledger_reads_the_jobs_of_that_page(reading: Any) -> None:
    spent = await cost(reading, backfills.PASSES, "fill", None, [], 10)
    assert spent.rows <= PASSES
    assert spent.buffers < 3_000


async def test_a_mark_reads_its_job_and_its_line(writing: Any) -> None:
    live = await writing.fetchval("select md5('live')::uuid")
    spent = await cost(writing, backfills.MARK, live, live, 7, '{"id": 1}', 10, 1, 0, None, 0, None)
    assert spent.rows <= 2
    assert spent.buffers < 40


async def test_taking_a_page_reads_its_job_and_its_line(writing: Any) -> None:
    live = await writing.fetchval("select md5('live')::uuid")
    spent = await cost(writing, backfills.TAKE, live, live, 7, 1_000, '{"id": 2}')
    assert spent.rows <= 2
    assert spent.buffers < 40


async def test_whether_one_has_completed_is_read_off_its_newest_lines(writing: Any) -> None:
    spent = await cost(writing, backfills.COMPLETED, "fill")
    assert spent.rows <= 2
    assert spent.buffers < 120


async def test_reconciling_reads_the_jobs_of_running_passes(writing: Any) -> None:
    spent = await cost(writing, backfills.RECONCILE)
    assert spent.rows <= 2
    assert spent.buffers < 300
