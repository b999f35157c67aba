"""History goes by the day: what that leaves behind, whom it waits for, and what a batch reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.test_migrate import ODD_SCHEMA
from tests.integration.postgres.test_rights import GRANTS
from ultijobs import Retention
from ultijobs._queue.retention import Kept, Shelf
from ultijobs._retention.sweeping import sweep
from ultijobs.errors import RightsMissing
from ultijobs.postgres import PostgresDriver, history, retention
from ultijobs.postgres.migrate import migrate
from ultijobs.postgres.place import SWEEPING
from ultijobs.postgres.sql import Sql

WINDOWS = Retention()
MANY = 300
DAY_MADE = """
select format('create table x_jobs_done_%s partition of x_jobs_done for values from (%L) to (%L)',
              to_char(d, 'YYYYMMDD'), d::timestamp at time zone 'UTC', (d + 1)::timestamp at time zone 'UTC')
  from (select (now() at time zone 'UTC')::date - $1::int as d) x
"""
FILLED = """
with ids as (select gen_random_uuid() as id, i from generate_series(1, $2::int) i),
jobs as (
  insert into x_jobs_done (id, run_id, name, state, input, finished_at)
  select id, id, 'send', $3::text, '{}',
         date_trunc('day', now() - $1::int * interval '1 day', 'UTC') + i * interval '1 s'
    from ids),
steps as (
  insert into x_job_steps (run_id, name, status, position, lease_no)
  select id, 'one', 'completed', 0, i from ids)
insert into x_job_attempts (run_id, job_id, lease_no, attempt, outcome)
select id, id, i, 1, 'retried' from ids
"""


async def fill(database: asyncpg.Connection, days_ago: int, rows: int = MANY, state: str = "done") -> None:
    await database.execute(
        FILLED.replace("$1::int", str(days_ago)).replace("$2::int", str(rows)).replace("$3::text", f"'{state}'")
    )


async def make_day(database: asyncpg.Connection, days_ago: int) -> None:
    await database.execute(await database.fetchval(DAY_MADE, days_ago))


async def days(database: asyncpg.Connection) -> list[str]:
    rows = await database.fetch(
        "select relname from pg_class where relkind = 'r' and relname ~ '^x_jobs_done_[0-9]' order by 1"
    )
    return [row[0] for row in rows]


async def counts(database: asyncpg.Connection) -> tuple[int, int, int]:
    tables = ("x_jobs_done", "x_job_steps", "x_job_attempts")
    return tuple([await database.fetchval(f"select count(*) from {table}") for table in tables])


async def test_a_day_that_is_over_is_dropped_with_all_that_belongs_to_its_runs(driver, database):
    ahead = await days(database)
    for day in (9, 8, 7):
        await make_day(database, day)
        await fill(database, day)
        await fill(database, day, 10, "cancelled")
    gone = await sweep(driver.retention, WINDOWS)
    assert gone == {Kept.DONE: 2 * MANY, Kept.CANCELLED: 20}
    assert len(await days(database)) == len(ahead) + 1
    assert await counts(database) == (MANY + 10,) * 3


async def test_a_schema_of_any_name_is_swept(empty_pg_url):
    await migrate(empty_pg_url, ODD_SCHEMA)
    database = await asyncpg.connect(empty_pg_url)
    await database.fetchval("select set_config('search_path', $1, false)", Sql(ODD_SCHEMA).quoted)
    driver = PostgresDriver(empty_pg_url, ODD_SCHEMA)
    await driver.open("worker")
    await make_day(database, 9)
    await fill(database, 9)
    await fill(database, 30)
    assert await sweep(driver.retention, WINDOWS) == {Kept.DONE: 2 * MANY}
    assert await counts(database) == (0, 0, 0)
    await driver.close()
    await database.close()


async def test_rows_that_found_no_day_of_their_own_go_one_by_one(driver, database):
    await fill(database, 30)
    await fill(database, 8, 5)
    await fill(database, 6, 7)
    assert await sweep(driver.retention, WINDOWS) == {Kept.DONE: MANY + 5}
    assert await counts(database) == (7,) * 3


async def test_of_two_times_the_shorter_one_is_kept_to_inside_of_a_day(driver, database):
    for day in (3, 2):
        await make_day(database, day)
        await fill(database, day)
        await fill(database, day, 4, "cancelled")
    assert await sweep(driver.retention, Retention(done="2d", cancelled="7d")) == {Kept.DONE: MANY}
    assert await sweep(driver.retention, Retention(done="7d", cancelled="2d")) == {Kept.CANCELLED: 4}
    assert await sweep(driver.retention, Retention(done="1h", cancelled="7d")) == {Kept.DONE: MANY}
    assert await counts(database) == (4,) * 3


async def test_a_sweep_that_was_broken_off_is_gone_on_with(driver, database):
    await make_day(database, 9)
    await fill(database, 9, 3_000)
    taken = await driver.retention.forget(Shelf.HISTORY, WINDOWS)
    partly = await driver.retention.forget(Shelf.HISTORY, WINDOWS, after=taken.after, limit=20)
    assert 0 < partly.rows[Kept.DONE] < 3_000
    assert await database.fetchval("select count(*) from x_jobs_all") == 0
    await sweep(driver.retention, WINDOWS)
    assert await counts(database) == (0, 0, 0)
    today = await database.fetchval("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")
    assert min(await days(database)) == f"x_jobs_done_{today}"


async def test_who_reads_history_makes_nobody_wait_for_long(driver, database, pg_url, job):
    await make_day(database, 9)
    await fill(database, 9)
    reader = await asyncpg.connect(pg_url)
    async with reader.transaction():
        await reader.fetch("select count(*) from x_jobs_done")
        async with asyncio.timeout(20):
            assert await sweep(driver.retention, WINDOWS) == {}
            await driver.enqueue([job()])
    await reader.close()
    assert await sweep(driver.retention, WINDOWS) == {Kept.DONE: MANY}


async def test_rows_that_somebody_holds_are_left_for_another_time(driver, database, pg_url):
    await fill(database, 30, 3)
    await database.execute("update x_jobs_done set state = 'cancelled'")
    holder = await asyncpg.connect(pg_url)
    async with holder.transaction():
        await holder.fetch("select id from x_jobs_done order by id limit 1 for update")
        assert await sweep(driver.retention, WINDOWS) == {Kept.CANCELLED: 2}
    await holder.close()
    assert await sweep(driver.retention, WINDOWS) == {Kept.CANCELLED: 1}


@pytest.fixture
async def other(pg_url: str) -> AsyncIterator[PostgresDriver]:
    driver = PostgresDriver(pg_url)
    await driver.open("worker")
    yield driver
    await driver.close()


async def test_two_sweeps_at_once_remove_each_row_once(driver, other, database):
    await make_day(database, 9)
    await fill(database, 9)
    await fill(database, 30)
    both = await asyncio.gather(*(sweep(each.retention, WINDOWS) for each in (driver, other)))
    await sweep(driver.retention, WINDOWS)
    assert sum(gone[Kept.DONE] for gone in both) <= 2 * MANY
    assert await counts(database) == (0, 0, 0)


async def test_a_day_that_somebody_sweeps_is_left_to_them(driver, database):
    await make_day(database, 9)
    await fill(database, 9)
    taken = await driver.retention.forget(Shelf.HISTORY, WINDOWS)
    async with database.transaction():
        [day] = [name for name in await days(database) if taken.after == f"day {name} 0"]
        assert await database.fetchval("select done from x_history_sweep($1, 0, 1)", day) > 0
        async with asyncio.timeout(20):
            assert await sweep(driver.retention, WINDOWS) == {}
    assert await sweep(driver.retention, WINDOWS) == {Kept.DONE: MANY}
    assert day not in await days(database)


async def test_a_role_that_cannot_make_tables_drops_days_all_the_same(pg_url, database):
    name = "sweeper_" + pg_url[-8:]
    await database.execute(f"create role {name} login; revoke create on schema public from public")
    await database.execute(GRANTS.format(role=name))
    await make_day(database, 9)
    await fill(database, 9)
    driver = PostgresDriver(pg_url.replace("postgres@", f"{name}@"))
    await driver.open("worker")
    assert await sweep(driver.retention, WINDOWS) == {Kept.DONE: MANY}
    await database.execute("revoke execute on function x_history_detach(date) from " + name)
    with pytest.raises(RightsMissing, match="permission denied for function x_history_detach"):
        await sweep(driver.retention, WINDOWS)
    await driver.close()
    await database.execute(f"drop owned by {name}; drop role {name}")


@pytest.mark.parametrize("name", ["x_jobs_done_default", "x_jobs", "x_jobs_done_20990101; drop table x_jobs"])
async def test_only_a_day_that_was_taken_out_can_be_swept(database, name):
    try:
        told = await database.fetchrow("select * from x_history_sweep($1, 0, 10)", name)
    except asyncpg.RaiseError:
        told = None
    assert told is None or tuple(told) == (0, 0, "gone")
    assert (
        await database.fetchval("select count(*) from pg_class where relname in ('x_jobs', 'x_jobs_done_default')") == 2
    )


LARGE = """
insert into x_jobs (id, run_id, name, state, finished_at)
select gen_random_uuid(), gen_random_uuid(), 'send', case when i % 2 = 0 then 'dead' else 'failed' end,
       now() - i * interval '1 min' from generate_series(1, 20000) i;
insert into x_jobs_done (id, run_id, name, state, finished_at)
select ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, gen_random_uuid(), 'send', 'done',
       now() - interval '3 days' from generate_series(1, 20000) i;
insert into x_job_steps (run_id, name, status, position, lease_no)
select run_id, 'one', 'completed', 0, 0 from x_jobs;
insert into x_schedule_slots (task, occurrence, outcome, decided_at)
select 't', now() - i * interval '1 h', 'fired', now() - i * interval '1 h' from generate_series(1, 20000) i;
insert into x_activity (id, at, actor, source, action, target)
select gen_random_uuid(), now() - i * interval '1 h', 'a', 'cli', 'pause', 'q' from generate_series(1, 20000) i;
insert into x_job_events (id, name, expires_at)
select gen_random_uuid(), 'e', now() + (i - 10000) * interval '1 min' from generate_series(1, 20000) i;
"""
DAYS = timedelta(days=10)
BATCHES = {
    "stopped": (retention.STOPPED, (*history.place_of(None), DAYS, DAYS, 100)),
    "stopped, one state": (retention.STOPPED, (*history.place_of(None), timedelta(days=900), DAYS, 100)),
    "default": (history.OVER_DEFAULT, (history.place_of(None)[1], 100, DAYS, timedelta(days=1))),
    "done": (history.OVER_DONE, (history.place_of(None)[1], 100, timedelta(days=1))),
    "cancelled": (history.OVER_CANCELLED, (history.place_of(None)[1], 100, timedelta(days=1))),
    "schedule": (retention.SCHEDULE, (DAYS, 100)),
    "activity": (retention.ACTIVITY, (DAYS, 100)),
    "events": (retention.EVENTS, (100,)),
}


def read(plan: dict[str, Any]) -> int:
    """The most rows that one scan read, kept or not; a summary of blocks tells blocks."""
    kept = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    counts = "Scan" in plan["Node Type"] and not plan.get("Index Name", "").endswith("finished_at_idx")
    return max([round(kept * plan["Actual Loops"]) if counts else 0, *(read(part) for part in plan.get("Plans", []))])


@pytest.mark.parametrize("known", [True, False], ids=["known to a pooler", "unknown"])
async def test_a_batch_reads_what_it_removes(database, pg_url, known):
    tables = ("x_jobs", "x_job_steps", "x_job_events", "x_schedule_slots", "x_activity")
    await database.execute("".join(f"alter table {table} set (autovacuum_enabled = off);" for table in tables))
    await database.execute(LARGE + ("analyze" if known else ""))
    sweeping = await asyncpg.connect(pg_url, server_settings={} if known else SWEEPING)
    for name, (statement, arguments) in BATCHES.items():
        transaction = sweeping.transaction()
        await transaction.start()
        told = await sweeping.fetchval(f"explain (analyze, format json) {Sql('public')(statement)}", *arguments)
        await transaction.rollback()
        assert read(json.loads(told)[0]["Plan"]) <= 400, name
    await sweeping.close()
