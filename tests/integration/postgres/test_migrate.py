from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import asyncpg
import pytest

from tests.support.servers import Server
from ultijobs.errors import Invariant, SchemaOutdated
from ultijobs.postgres.applying import Migration
from ultijobs.postgres.migrate import check, migrate, migrations, target

MIGRATE = sys.modules[migrate.__module__]
ADDED = Migration(target() + 1, "0002_color.sql", target(), "alter table {schema}.x_jobs add column color text;")
INDEXED = Migration(
    target() + 2,
    "0003_by_color.sql",
    target(),
    "-- concurrently\ncreate unique index concurrently if not exists x_jobs_color on {schema}.x_jobs (color);\n"
    "drop index concurrently if exists {schema}.x_jobs_suspended;\n",
    concurrently=True,
)
ODD_SCHEMA = """we"ird 'schema' {schema} %s"""


async def test_two_migrations_at_once_apply_each_step_once(empty_pg_url):
    answers = await asyncio.gather(*(migrate(empty_pg_url, "jobs") for _ in range(4)))
    assert sorted(answers, reverse=True) == [list(range(1, target() + 1)), [], [], []]


async def test_a_second_migration_finds_nothing_to_do(pg_url):
    assert await migrate(pg_url, "public") == []


@pytest.mark.parametrize("schema", ["public", "jobs", ODD_SCHEMA, "x" * 63])
async def test_any_schema_name_is_quoted(empty_pg_url, schema):
    assert await migrate(empty_pg_url, schema) == list(range(1, target() + 1))
    connection = await asyncpg.connect(empty_pg_url)
    assert await check(connection, schema) == target()
    partitions = await connection.fetchval(
        "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = $1"
        " and relname like 'x_jobs_done_2%' and relispartition and relkind = 'r'",
        schema,
    )
    assert partitions == 8
    await connection.close()


async def test_a_database_without_tables_is_refused_with_both_versions_and_the_command(empty_pg_url):
    connection = await asyncpg.connect(empty_pg_url)
    with pytest.raises(SchemaOutdated) as refusal:
        await check(connection, "jobs")
    assert "version 0" in refusal.value.cause
    assert f"version {target()}" in refusal.value.cause
    assert refusal.value.fix == "ultijobs migrate --schema jobs"
    await connection.close()


async def test_a_newer_schema_is_accepted_when_it_says_that_this_release_fits(pg_url):
    connection = await asyncpg.connect(pg_url)
    await connection.execute("insert into x_schema values ($1, $2, 'next')", target() + 1, target())
    assert await check(connection, "public") == target() + 1
    await connection.close()


async def test_a_newer_incompatible_schema_is_refused_by_check_and_by_migrate(pg_url):
    connection = await asyncpg.connect(pg_url)
    await connection.execute("insert into x_schema values ($1, $1, 'next')", target() + 5)
    with pytest.raises(SchemaOutdated, match=f"at version {target() + 5}") as refusal:
        await check(connection, "public")
    assert "upgrade ultijobs" in refusal.value.fix
    with pytest.raises(SchemaOutdated):
        await migrate(pg_url, "public")
    await connection.close()


async def test_an_older_schema_is_refused(pg_url):
    connection = await asyncpg.connect(pg_url)
    await connection.execute("update x_schema set version = 0")
    with pytest.raises(SchemaOutdated, match="at version 0"):
        await check(connection, "public")
    await connection.close()


async def test_a_role_without_ddl_rights_is_told_what_to_do(pg: Server, empty_pg_url):
    connection = await asyncpg.connect(empty_pg_url)
    role = "limited_" + empty_pg_url[-8:]
    await connection.execute(f"create role {role} login")
    url = empty_pg_url.replace("postgres@", f"{role}@")
    with pytest.raises(SchemaOutdated, match="may not apply") as refusal:
        await migrate(url, "jobs")
    assert "as a role that may create" in refusal.value.fix
    await connection.execute(f"drop role {role}")
    await connection.close()


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """A release that carries two more steps: a column, and a concurrent index on it."""
    steps = (*migrations(), ADDED, INDEXED)
    monkeypatch.setattr(MIGRATE, "migrations", lambda: steps)
    return ADDED.version, INDEXED.version


async def indexes(connection: asyncpg.Connection) -> dict[str, bool]:
    rows = await connection.fetch(
        "select c.relname, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid"
        " where i.indrelid = 'x_jobs'::regclass"
    )
    return {row["relname"]: row["indisvalid"] for row in rows}


async def test_the_steps_of_a_next_release_are_applied_in_order_and_once(pg_url, database, next_release):
    assert await migrate(pg_url) == list(next_release)
    assert await migrate(pg_url) == []
    found = await indexes(database)
    assert found["x_jobs_color"]
    assert "x_jobs_suspended" not in found
    versions = await database.fetch("select version, compatible_from from x_schema where version > 1 order by 1")
    assert [tuple(row) for row in versions] == [(2, 1), (3, 1)]


async def test_many_migrations_of_a_next_release_at_once_apply_each_step_once(pg_url, next_release):
    answers = await asyncio.wait_for(asyncio.gather(*(migrate(pg_url) for _ in range(4))), 30)
    assert sorted(step for answer in answers for step in answer) == list(next_release)


async def test_workers_of_the_release_before_go_on_during_and_after_a_migration(pg_url, driver, job, ask, next_release):
    await driver.enqueue([job() for _ in range(2)])
    assert len(await driver.claim(ask(1))) == 1
    assert await migrate(pg_url) == list(next_release)
    assert len(await driver.claim(ask(1))) == 1
    [later] = await driver.enqueue([job()])
    [found] = await driver.claim(ask(1))
    assert found.id == later.id


async def test_a_step_that_needs_a_table_which_somebody_reads_holds_nobody_up_for_long(
    pg_url, database, driver, job, next_release
):
    async with database.transaction():
        await database.fetch("select count(*) from x_jobs")
        migrating = asyncio.create_task(migrate(pg_url))
        for _ in range(10):
            async with asyncio.timeout(10):
                await driver.enqueue([job()])
            await asyncio.sleep(0.05)
        assert not migrating.done()
    assert await asyncio.wait_for(migrating, 30) == list(next_release)


async def test_a_step_that_fails_leaves_nothing_of_itself(pg_url, database, monkeypatch):
    broken = replace(ADDED, sql=ADDED.sql + "select 1 / 0;")
    monkeypatch.setattr(MIGRATE, "migrations", lambda: (*migrations(), broken))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(pg_url)
    assert await database.fetchval("select max(version) from x_schema") == target() - 1
    assert not await database.fetchval("select exists (select from pg_attribute where attname = 'color')")


async def test_an_index_that_was_broken_off_is_made_again(pg_url, database, driver, job, next_release, monkeypatch):
    monkeypatch.setattr(MIGRATE, "migrations", lambda: (*migrations(), ADDED))
    await migrate(pg_url)
    await driver.enqueue([job(), job()])
    await database.execute("update x_jobs set color = 'red'")
    monkeypatch.setattr(MIGRATE, "migrations", lambda: (*migrations(), ADDED, INDEXED))
    with pytest.raises(asyncpg.UniqueViolationError):
        await migrate(pg_url)
    assert (await indexes(database))["x_jobs_color"] is False
    await database.execute("update x_jobs set color = id::text")
    assert await migrate(pg_url) == [INDEXED.version]
    assert (await indexes(database))["x_jobs_color"]


def test_a_concurrent_step_is_nothing_but_indexes():
    with pytest.raises(Invariant, match="is no concurrent index"):
        list(replace(INDEXED, sql="alter table {schema}.x_jobs add column color text").statements())


def test_each_step_that_is_shipped_says_with_which_releases_it_works():
    for step in migrations():
        assert 1 <= step.compatible_from <= step.version
        assert "compatible-from" in step.sql
        if step.concurrently:
            assert list(step.statements())
