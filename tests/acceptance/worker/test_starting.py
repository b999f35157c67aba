"""A worker that cannot start says why and ends with 4; one whose database is away waits for it."""

from __future__ import annotations

import pytest

from tests.faults.proxy import Proxy
from tests.support.eventually import eventually
from tests.support.scenes import Scene, scene
from tests.support.scraping import health, port_of
from tests.support.stage import Ask, quick


async def refused(stage: Scene, **options: str) -> str:
    worker = await stage.worker("w1", ready=False, **options)
    assert await worker.exit_code() == 4
    return worker.text()


async def test_a_database_without_tables_is_refused(empty_pg_url: str):
    async with scene(empty_pg_url, "tests.support.stage:app") as stage:
        said = await refused(stage)
        tables = await stage.value("select count(*) from pg_tables where tablename like 'x\\_%'")
    assert "X_SCHEMA_OUTDATED" in said
    assert "ultijobs migrate" in said
    assert tables == 0, "no statement that defines was issued"


@pytest.mark.parametrize(
    "change",
    [
        "update x_schema set version = 0",
        "insert into x_schema (version, compatible_from, library) values (99, 99, '9.9.9')",
    ],
    ids=["older", "newer"],
)
async def test_a_schema_that_does_not_fit_is_refused_naming_both_versions(stage: Scene, change: str):
    await stage.fetch(change)
    job = await stage.value(
        "insert into x_jobs (id, run_id, name, input) values "
        "(gen_random_uuid(), gen_random_uuid(), 'quick', '{\"key\": \"k\"}') returning id"
    )
    said = await refused(stage)
    assert "X_SCHEMA_OUTDATED" in said
    assert ("99" if "99" in change else "0") in said
    assert "1" in said
    assert (await stage.job(job))["attempt"] == 0


async def test_a_database_that_is_away_is_waited_for(stage: Scene, pg_url: str):
    with Proxy(pg_url) as proxy:
        proxy.refuse()
        worker = await stage.worker("w1", url=proxy.url, ready=False, metrics_port=0)
        await worker.said("jobs.database.away")
        port = await port_of(worker)

        async def unhealthy() -> bool:
            status, told = await health(port)
            return status == 503 and any("away" in reason for reason in told["reasons"])

        await eventually(unhealthy)
        proxy.heal()
        await worker.said("jobs.database.back")
        job = await quick.enqueue(Ask(key="k"))
        await stage.ended(job.id)
        proxy.refuse()
        await eventually(lambda: len(worker.lines("jobs.database.away")) == 2)
        later = await quick.enqueue(Ask(key="later"))
        await eventually(unhealthy)
        proxy.heal()
        await stage.ended(later.id, within=8)
        await eventually(lambda: len(worker.lines("jobs.database.back")) == 2)
        assert len(worker.lines("jobs.database.away")) == 2, "one line when it goes, one when it is back"
        assert (await health(port))[0] == 200
