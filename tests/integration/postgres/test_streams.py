"""What a claimer remembers of the queue never keeps a row from being claimed, and keeps it from searching twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._queue.claims import Allowance
from ultijobs._queue.telling import SignalKind
from ultijobs.postgres import claims, streams
from ultijobs.postgres.links import Links

CROWD = """
insert into x_jobs (id, run_id, name, run_at, input)
select gen_random_uuid(), gen_random_uuid(), 'unknown', now() - interval '1 day' + i * interval '1 ms', 'null'
  from generate_series(1, 20000) i
"""


@pytest.fixture
def sent(driver, monkeypatch):
    """Which statements of claiming were sent, and how often."""
    counted = Counter()
    names = {driver._sql(claims.CLAIM): "claim", driver._sql(streams.STREAMS): "scan"}
    fetch = Links.fetch

    async def counting(self, statement, *arguments, limit=None):
        counted[names.get(statement, "other")] += 1
        return await fetch(self, statement, *arguments, limit=limit)

    monkeypatch.setattr(Links, "fetch", counting)
    return counted


async def test_an_idle_claim_is_one_statement_and_so_is_one_of_a_known_stream(driver, job, ask, sent):
    assert await driver.claim(ask()) == []
    assert sent == {"scan": 1}
    await driver.enqueue([job() for _ in range(20)])
    sent.clear()
    assert len(await driver.claim(ask(10))) == 10
    assert len(await driver.claim(ask(10))) == 10
    assert sent == {"claim": 2}


async def test_rows_of_an_unknown_name_are_stepped_over_once(driver, database, job, ask):
    await database.execute(CROWD)
    assert await driver.claim(ask()) == []
    [stream] = driver._claimer._book.streams(["default"])
    newest = await database.fetchval("select max(run_at) from x_jobs")
    assert stream.from_at > newest
    [enqueued] = await driver.enqueue([job()])
    assert [claimed.id for claimed in await driver.claim(ask())] == [enqueued.id]


async def test_searches_that_find_nothing_have_a_share_of_the_time_alone(driver, ask):
    await driver.claim(ask())
    book = driver._claimer._book
    book.spend(timedelta(seconds=1))
    assert not book.affordable()
    assert not book.is_stale(["default"])
    book._budget_at -= 20.0
    assert book.affordable()


async def test_a_row_that_is_committed_late_is_claimed_all_the_same(driver, database, job, ask):
    async with database.transaction():
        [late] = await driver.enqueue([job()], tx=database)
        later = "select clock_timestamp() > run_at + $2 from x_jobs where id = $1"
        await eventually(lambda: database.fetchval(later, late.id, 1.4 * streams._LATE))
        for _ in range(3):
            await driver.enqueue([job()])
            [claimed] = await driver.claim(ask())
            await driver.settle([settlement(claimed)])
        [stream] = driver._claimer._book.streams(["default"])
        assert stream.from_at > await database.fetchval("select now()"), "the claimer has looked past it"
    [found] = await eventually(lambda: driver.claim(ask()), within=10.0, every=0.2)
    assert found.id == late.id


async def test_a_first_row_of_a_higher_priority_goes_ahead_within_a_second(driver, job, ask):
    await driver.enqueue([job() for _ in range(500)])
    await driver.claim(ask(1))
    [urgent] = await driver.enqueue([job(priority=5)])

    async def ahead() -> bool:
        [claimed] = await driver.claim(ask(1))
        return claimed.id == urgent.id

    await eventually(ahead, within=10.0, every=0.05)


async def test_a_row_of_another_stream_is_found_when_the_known_ones_are_empty(driver, job, ask):
    await driver.claim(ask())
    [odd] = await driver.enqueue([job(priority=-3, lane="elsewhere")])
    assert [claimed.id for claimed in await driver.claim(ask())] == [odd.id]


async def test_a_paused_queue_is_not_searched_and_resumes_by_itself(driver, job, ask, sent):
    await driver.enqueue([job()])
    await driver.pause("default", actor="me", reason=None, duration=timedelta(seconds=0.4))
    sent.clear()
    assert await driver.claim(ask()) == []
    assert sent["claim"] == 0
    wait = await driver.next_due(["default"], ["send"])
    assert wait is not None
    assert timedelta(0) < wait <= timedelta(seconds=0.4)
    assert await eventually(lambda: driver.claim(ask()), within=10.0)


async def test_the_next_due_time_is_that_of_the_first_row_that_is_not_due_yet(driver, job, ask):
    assert await driver.next_due(["default"], ["send"]) is None
    await driver.enqueue([job(delay=timedelta(minutes=5)), job(delay=timedelta(minutes=1), priority=-1)])
    await driver.claim(ask())
    wait = await driver.next_due(["default"], ["send"])
    assert wait is not None
    assert timedelta(seconds=30) < wait <= timedelta(minutes=1)


MANY_TENANTS = """
insert into x_jobs (id, run_id, name, input, run_at, tenant_id, lane)
select gen_random_uuid(), gen_random_uuid(), 'send', 'null', now() - interval '1 h' + i * interval '1 ms',
       to_char(i, 'FM00000'), 't:' || to_char(i, 'FM00000') from generate_series(1, 2500) i
"""


async def test_more_lanes_than_one_scan_finds_are_all_served_and_none_is_kept(driver, database, ask):
    await database.execute(MANY_TENANTS)
    wanted = replace(ask(400), tenants=Allowance(1), fair=frozenset({"default"}))
    claimed = 0
    for _ in range(12):
        jobs = await driver.claim(wanted)
        claimed += len(jobs)
        assert len(driver._claimer._book) <= 2_100
    assert claimed == 2_500
    await driver.claim(wanted)
    assert [stream.lane for stream in driver._claimer._book.streams(["default"])] in ([], [""])


async def test_tenants_at_their_limit_hide_nobody_however_many_they_are(driver, database, job, ask, sent):
    await database.execute(MANY_TENANTS)
    [free] = await driver.enqueue([job(tenant_id="last", lane="t:last")])
    allowed = Allowance(1, {f"{number:05}": 0 for number in range(1, 2501)})
    [claimed] = await eventually(lambda: driver.claim(replace(ask(), tenants=allowed)), within=10.0)
    assert claimed.id == free.id
    assert sent["claim"] == 1, "what is at its limit is not even looked for"


async def test_rows_of_no_tenant_are_claimed_by_one_statement_where_tenants_are_limited(driver, job, ask, sent):
    await driver.enqueue([job() for _ in range(40)])
    assert len(await driver.claim(replace(ask(40), tenants=Allowance(1)))) == 40
    assert sent["claim"] == 1


async def test_an_enqueue_elsewhere_is_told_to_a_listener(driver, pg_url, job):
    other = await asyncpg.connect(pg_url)
    told = []
    async with driver.subscribe(told.append):
        async with other.transaction():
            await driver.enqueue([job(queue="mail")], tx=other)
        await eventually(lambda: [signal.value for signal in told if signal.kind is SignalKind.QUEUE] == ["mail"])
    await other.close()
