"""A drain as a process that is killed, with workers on both sides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import asyncpg
import pytest

from tests.support.eventually import eventually
from tests.support.scenes import scene
from tests.support.servers import Server

JOBS = 240


@pytest.fixture
def there_url(pg: Server) -> Iterator[str]:
    url = pg.create()
    yield url
    pg.drop(url)


async def test_a_drain_that_is_killed_is_gone_on_with_and_each_job_runs_once(pg_url: str, there_url: str) -> None:
    async with scene(pg_url, "tests.support.moved:app") as stage:
        await stage.pool.execute(
            "insert into x_jobs (id, run_id, name, queue, idempotency_key, input)"
            " select i, i, 'note', 'bulk', g::text, json_build_object('n', g)"
            f" from (select g, gen_random_uuid() as i from generate_series(1, {JOBS}) g) x"
        )
        there = await asyncpg.connect(there_url)
        words = ["-m", "ultijobs_cli", "jobs", "drain", "--queue", "bulk", "--to", there_url, "--yes"]
        await stage.worker("there", url=there_url)
        killed = 0
        while killed < 3:
            before = await stage.value("select count(*) from x_jobs")
            drain = stage.spawn(f"drain-{killed}", [*words, "--pace", "5/20ms"])
            await eventually(lambda left=before - 10: under(stage, left), that="some jobs have gone")
            drain.kill()
            killed += 1
        # Whoever takes the old queue up again meets none of what is on its way.
        await stage.pool.execute("delete from x_queues")
        held = await stage.value("select count(*) from x_jobs where cancel_reason is not null")
        here = await stage.worker("here")
        await eventually(lambda: under(stage, held), that="what was not held yet has run here")
        here.terminate()
        assert await here.exit_code() == 0
        last = stage.spawn("drain", words)
        assert await last.exit_code() == 0, last.text()
        await eventually(lambda: idle(there), within=30, that="everything has run there")
        runs = await stage.fetch("select step, count(*) as n from fx group by step")
        assert len(runs) == JOBS
        assert {row["n"] for row in runs} == {1}
        done = await there.fetchval("select count(*) from x_jobs_done where state = 'done'")
        done += await stage.value("select count(*) from x_jobs_done where state = 'done'")
        assert done == JOBS
        await there.close()


async def under(stage: object, left: int) -> bool:
    return await stage.value("select count(*) from x_jobs") <= left  # type: ignore[attr-defined]


async def idle(there: asyncpg.Connection) -> bool:
    return await there.fetchval("select count(*) from x_jobs") == 0


def test_a_target_that_ends_with_the_command_is_refused_and_nothing_changes(pg_url: str) -> None:
    words = [sys.executable, "-m", "ultijobs_cli", "jobs", "drain", "--queue", "bulk", "--to", "memory:", "--yes"]
    done = subprocess.run(
        [*words, "--json", "--database-url", pg_url], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "X_MOVE_REFUSED" in done.stdout
