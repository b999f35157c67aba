"""Relays as processes: alone, inside of a worker, and stopped in the middle of a pass."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cli.processes import SHOP, Shop
from tests.support.eventually import eventually
from ultijobs import App, job
from ultijobs._connect import driver_for

STAGING = SHOP.replace("app = App(jobs=[ship, wait])", 'app = App(jobs=[ship, wait], outbox="{url}")')


@pytest.fixture
def app_url(pg):
    url = pg.create()
    yield url
    pg.drop(url)


@pytest.fixture
def shop(tmp_path: Path, pg_url: str, app_url: str) -> Shop:
    made = Shop(tmp_path, pg_url)
    (tmp_path / "shop.py").write_text(STAGING.replace("{url}", app_url), encoding="utf-8")
    return made


@pytest.fixture
async def outbox(app_url):
    driver = driver_for(app_url)
    await driver.open()
    yield driver.outbox
    await driver.close()


@pytest.fixture
async def queue(pg_url):
    connection = await asyncpg.connect(pg_url)
    yield connection
    await connection.close()


async def stage(pg_url: str, app_url: str, count: int = 3) -> list[str]:
    """Orders staged by an application that declares the same job."""

    @job(idempotency_key=lambda order: order["id"], tenant="none")
    async def ship(input: dict[str, Any]) -> None: ...

    async with App(jobs=[ship], driver=pg_url, outbox=app_url) as app:
        connection = await asyncpg.connect(app_url)
        async with connection.transaction():
            rows = [await app.enqueue(ship, {"id": str(number)}, tx=connection) for number in range(count)]
        await connection.close()
    return [str(row.id) for row in rows]


async def states(outbox) -> list[str]:
    return [row.state for row in (await outbox.rows()).rows]


async def test_a_relay_publishes_what_was_staged_and_ends_with_0_on_sigterm(shop, outbox, pg_url, app_url):
    ids = await stage(pg_url, app_url)
    with shop.started("relay", "--name", "r-1", "--log-format", "json") as relay:
        await eventually(lambda: _all(outbox, "published"), within=40)
        relay.signal(signal.SIGTERM)
        assert relay.code() == 0
        events = [json.loads(line)["event"] for line in relay.said().splitlines() if line.startswith("{")]
    assert events == ["jobs.outbox.started"]
    assert [shop.run("jobs", "show", row, "--json").data["state"] for row in ids] == ["ready"] * 3
    listed = shop.run("outbox", "ls", "--json")
    assert listed.code == 0, listed.err
    told = listed.data["rows"]
    assert [(row["id"], row["state"], row["claimed_by"]) for row in reversed(told)] == [
        (row, "published", "r-1") for row in ids
    ]


async def test_a_signal_in_the_middle_of_a_publish_waits_for_its_mark(shop, outbox, queue, pg_url, app_url):
    ids = await stage(pg_url, app_url)
    with shop.started("relay") as relay:
        await eventually(lambda: "jobs.outbox.started" in relay.said(), within=40)
        await eventually(lambda: _all(outbox, "published"), within=40)
        held = queue.transaction()
        await held.start()
        await queue.execute("lock table x_jobs in exclusive mode")
        ids += await stage(pg_url, app_url, count=1)
        await eventually(lambda: _claimed(outbox), within=40)
        relay.signal(signal.SIGTERM)
        await eventually(lambda: queue.fetchval(WAITING), within=10)
        assert relay.process.poll() is None
        await held.commit()
        assert relay.code() == 0
    assert await states(outbox) == ["published"] * 4
    # Nothing is published again at the next start.
    with shop.started("relay") as relay:
        await eventually(lambda: "jobs.outbox.started" in relay.said(), within=40)
        relay.signal(signal.SIGTERM)
        assert relay.code() == 0
    assert await queue.fetchval("select count(*) from x_jobs_all") == 3


WAITING = "select count(*) from pg_locks where not granted and relation = 'x_jobs'::regclass"


async def test_a_worker_relays_beside_its_jobs_unless_it_is_told_not_to(shop, outbox, queue, pg_url, app_url):
    await stage(pg_url, app_url)
    with shop.started("worker", "--no-relay", "--log-format", "json") as worker:
        await eventually(lambda: "jobs.worker.started" in worker.said(), within=40)
        worker.signal(signal.SIGTERM)
        assert worker.code() == 0
    assert await states(outbox) == ["staged"] * 3
    with shop.started("worker", "--poll", "200ms", "--log-format", "json") as worker:
        done = "select count(*) = 3 from x_jobs_all where state = 'done'"
        await eventually(lambda: queue.fetchval(done), within=40)
        worker.signal(signal.SIGTERM)
        assert worker.code() == 0
    assert await states(outbox) == ["published"] * 3


async def test_the_outbox_is_looked_for_where_the_application_has_it_or_where_a_flag_says(shop, pg_url, app_url):
    await stage(pg_url, app_url, count=1)
    for words in (
        [],
        ["--app", "shop:app"],
        ["--app", "shop:app", "--database-url", pg_url],
        ["--database-url", app_url],
    ):
        listed = shop.run("outbox", "ls", *words, "--json")
        assert listed.code == 0, listed.err
        assert (len(listed.data["rows"]), listed.data["database"]) == (1, app_url), words
    beside = shop.run("outbox", "ls", "--database-url", pg_url, "--json").data
    assert (beside["rows"], beside["database"]) == ([], pg_url)


def test_the_tables_of_the_outbox_are_made_by_migrate(tmp_path, pg_url, empty_pg_url):
    shop = Shop(tmp_path, None)
    said = STAGING.replace("outbox=", f'driver="{pg_url}", outbox=').replace("{url}", empty_pg_url)
    (tmp_path / "shop.py").write_text(said, encoding="utf-8")
    made = shop.run("migrate", "--database-url", empty_pg_url, "--json")
    assert made.code == 0, made.err
    assert shop.run("outbox", "ls", "--json").data["rows"] == []
    other = pg_url.replace("t_", "other_")
    assert shop.run("migrate", "--database-url", other, "--json").code == 2


def test_a_relay_without_an_outbox_does_not_start(tmp_path, pg_url):
    done = Shop(tmp_path, pg_url).run("relay", "--json")
    assert done.code == 4
    assert done.json["findings"][0]["code"] == "X_INVARIANT"


async def _all(outbox, state: str) -> bool:
    return set(await states(outbox)) == {state}


async def _claimed(outbox) -> bool:
    return any(row.claimed_at is not None for row in (await outbox.rows()).rows)
