from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.support.servers import Server
from ultijobs.errors import SchemaOutdated
from ultijobs.postgres.migrate import check, migrate, target

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
