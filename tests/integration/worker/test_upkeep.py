"""Workers look after the database: what is over its time goes, and who holds back vacuum is named once."""

from __future__ import annotations

import logging

import asyncpg
import pytest

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import JOBS, Ask, quick
from ultijobs import App, Retention
from ultijobs._worker import alarms
from ultijobs.postgres import PostgresDriver


async def test_a_running_worker_removes_what_is_over_its_time(stage: Scene):
    app = App(jobs=JOBS, driver=stage.url, retention=Retention(done="1s", cancelled="1s"))
    async with app, working(app):
        job = await app.enqueue(quick, Ask(key="k"))

        async def gone() -> bool:
            return await stage.value("select count(*) from x_jobs_all") == 0 and bool(await stage.effects(job=job.id))

        await eventually(gone, within=15)
    assert await stage.value("select count(*) from x_job_steps") == 0


async def test_a_transaction_that_holds_back_vacuum_is_named_once_by_its_pid(
    pg_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(alarms, "OLD_SNAPSHOT", 0)
    caplog.set_level(logging.WARNING, "ultijobs")
    driver = PostgresDriver(pg_url)
    sounding = alarms.Alarms(driver, "w")
    await driver.open("worker")
    session = await asyncpg.connect(pg_url, server_settings={"application_name": "report"})
    pid = session.get_server_pid()

    async def told() -> list[str]:
        sounding.old_snapshots((await driver.inspect.health()).snapshots)
        return [record.getMessage() for record in caplog.records if f"pid {pid} " in record.getMessage()]

    assert await told() == []
    for times in (1, 2):
        async with session.transaction(isolation="repeatable_read"):
            await session.fetch("select 1")
            await eventually(told)
            assert len(await told()) == times
        assert len(await told()) == times
    assert "report" in caplog.text
    await session.close()
    await driver.close()
