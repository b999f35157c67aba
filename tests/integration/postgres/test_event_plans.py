"""What events cost: a publish its own runs, a look its own event, and nothing for all the others that wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.large import SETTINGS, large_databases
from tests.integration.postgres.test_plans import cost
from tests.support.servers import Server
from ultijobs._ids import new_id
from ultijobs.postgres import events
from ultijobs.postgres.place import READING

WAITING = 10_000
# Each run waits for its own key; run 1 is running, with two waits of its own; a history of events of one name.
FILL = f"""
insert into x_jobs (id, run_id, name, queue, state, run_at, input, lease_no)
select v.id, v.id, 'waits', 'default', 'suspended', now() + interval '1 hour', '{{}}', i
  from (select i, md5(i::text)::uuid as id from generate_series(1, {WAITING}) i) v;
insert into x_job_steps (run_id, name, kind, status, position, lease_no, event, match, wake_at)
select md5(i::text)::uuid, 'wait', 'wait', 'waiting', 1, i, 'paid', 'o-' || i, now() + interval '1 hour'
  from generate_series(1, {WAITING}) i;
update x_jobs set state = 'running', lease_until = now() + interval '1 hour', created_at = now() - interval '1 day'
 where id = md5('1')::uuid;
insert into x_job_steps (run_id, name, kind, status, position, lease_no, event, match, wake_at)
values (md5('1')::uuid, 'any key', 'wait', 'waiting', 2, 1, 'paid', null, now() + interval '1 hour');
insert into x_job_events (id, name, key, payload, published_at, expires_at, delivered)
select gen_random_uuid(), name, 'o-' || (i % 100), '{{}}', now() - i * interval '1 second', now() + interval '7 days',
       true
  from generate_series(1, {WAITING}) i, (values ('paid'), ('refunded')) kind(name);
"""


@pytest.fixture(scope="module")
def large_urls(pg: Server) -> Iterator[dict[str, str]]:
    with large_databases(pg, ["x_jobs", "x_job_steps", "x_job_events"], FILL) as urls:
        yield urls


@pytest.fixture(
    params=[("analysed", "generic"), ("analysed", "custom"), ("never analysed", "generic")],
    ids="-".join,
)
async def connection(large_urls: dict[str, str], request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    state, settings = request.param
    connection = await asyncpg.connect(large_urls[state], server_settings=SETTINGS[settings])
    yield connection
    await connection.close()


async def put(connection: asyncpg.Connection, key: str | None) -> None:
    await connection.execute(
        "insert into x_job_events (id, name, key, expires_at) values ($1, 'paid', $2, now() + interval '1 day')",
        new_id(),
        key,
    )


async def test_delivering_reads_the_runs_of_its_event_and_nothing_of_the_ten_thousand_others(connection: Any) -> None:
    async with _rolled_back(connection):
        await put(connection, "o-77")
        spent = await cost(connection, events.DELIVER)
        assert spent.rows <= 2
        assert spent.buffers < 200


async def test_there_being_nothing_to_deliver_costs_next_to_nothing(connection: Any) -> None:
    spent = await cost(connection, events.DELIVER)
    assert spent.rows == 0
    assert spent.buffers < 20


async def test_delivering_an_event_of_many_runs_reads_each_of_them_a_few_times(connection: Any) -> None:
    async with _rolled_back(connection):
        await connection.execute("update x_job_steps set match = 'all' where match is not null and lease_no <= 1000")
        await put(connection, "all")
        spent = await cost(connection, events.DELIVER)
        assert spent.rows <= 2_100
        assert spent.buffers < 50_000


@pytest.mark.parametrize("step", ["wait", "any key"])
async def test_a_look_reads_the_earliest_event_that_fits_and_no_other(connection: Any, step: str) -> None:
    run = await connection.fetchval("select id from x_jobs where state = 'running'")
    spent = await cost(
        connection, events.LOOK, [run], [1], [run], [step], [True], [False], [timedelta(seconds=1)]
    )  # fmt: skip
    assert spent.rows <= 4
    assert spent.buffers < 100


@pytest.mark.parametrize("state", ["analysed", "never analysed"])
async def test_a_list_reads_what_it_shows(large_urls: dict[str, str], state: str) -> None:
    reading = await asyncpg.connect(large_urls[state], server_settings=READING)
    newest = await cost(reading, events.PAGE, None, 101)
    named = await cost(reading, events.PAGE_OF_NAME, "paid", None, None, 101)
    await reading.close()
    assert max(newest.rows, named.rows) <= 101


class _rolled_back:  # noqa: N801 - reads as a function
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._transaction = connection.transaction()

    async def __aenter__(self) -> None:
        await self._transaction.start()

    async def __aexit__(self, *_: object) -> None:
        await self._transaction.rollback()
