"""A pass whose process is killed within a page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.eventually import eventually
from tests.support.filling import fill
from tests.support.scenes import Scene, scene
from ultijobs import App

ITEMS = """
    create table items (id bigint primary key, done boolean not null default false);
    create table handled (n bigint generated always as identity, first bigint, size int, pid int, attempt int);
    create table stopped (n bigint generated always as identity);
    insert into items select i from generate_series(1, 10000) i;
"""


@pytest.fixture
async def shelves(pg_url: str) -> AsyncIterator[Scene]:
    async with scene(pg_url, "tests.support.filling:app") as stage, App(jobs=[fill], driver=pg_url):
        await stage.pool.execute(ITEMS)
        yield stage


async def test_a_pass_that_is_killed_within_a_page_goes_on_there_and_counts_every_row_once(shelves: Scene):
    command = ["-m", "ultijobs_cli", "worker", "--app", shelves.app, "--lease", "2s", "--poll", "0.2s"]
    first = shelves.spawn("w1", command, STOPS_AT="5601")
    answer = await fill.enqueue()
    await eventually(lambda: shelves.value("select count(*) = 1 from stopped"), within=40, that="it is in page 57")
    first.kill()
    (cut,) = await shelves.fetch("select * from x_backfills")
    assert (cut["status"], cut["rows"], cut["batches"], cut["in_hand"]) == ("running", 5_600, 56, 100)
    await shelves.worker("w2")
    await shelves.ended(answer.id, within=60)
    handled = await shelves.fetch("select first, size, pid, attempt from handled order by n")
    assert [row["first"] for row in handled if row["pid"] == first.pid] == [100 * i + 1 for i in range(57)]
    again = [row for row in handled if row["pid"] != first.pid]
    assert [(row["first"], row["size"]) for row in again] == [
        (5_661, 40),
        *((100 * i + 1, 100) for i in range(57, 100)),
    ]
    assert {row["attempt"] for row in again} == {2}
    assert await shelves.value("select count(*) from items where not done") == 0
    (line,) = await shelves.fetch("select * from x_backfills")
    assert (line["status"], line["rows"], line["batches"]) == ("completed", 10_000, 100)
    assert (line["started_at"], line["run_id"]) == (cut["started_at"], answer.run_id)
    assert await shelves.value("select count(*) from x_job_steps") == 0
