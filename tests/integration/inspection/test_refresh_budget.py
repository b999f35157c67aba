"""A refresh of any screen is six statements at the most, under a time limit, on a connection that can only read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk
from ultijobs._queue.records import NewJob
from ultijobs.errors import DriverUnavailable
from ultijobs.inspection import Field, Inspector
from ultijobs.postgres.links import Links
from ultijobs_tui.frame import ActivityAsk, Needs, OutboxAsk, PageAsk, TallyAsk
from ultijobs_tui.reading import Reader

MOST = 6
BARS_EVERY = 10.0


class Counted:
    """Statements of inspection, and whether each went where nothing can be written."""

    def __init__(self) -> None:
        self.read_only: list[bool] = []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    plain = Links.fetch

    async def fetch(self: Links, statement: str, *arguments: object, limit: float | None = None) -> list[Any]:
        found.read_only.append(self._read_only)
        return await plain(self, statement, *arguments, limit=limit)

    monkeypatch.setattr(Links, "fetch", fetch)
    return found


@pytest.fixture
async def inspector(pg_url: str) -> AsyncIterator[Inspector]:
    async with Inspector.connect(pg_url, role="tui") as opened:
        yield opened


@pytest.fixture
async def jobs(inspector: Inspector) -> list[UUID]:
    """One that runs under a lease that lapsed, one that no worker knows, one of a paused queue."""
    driver = inspector.driver
    rows = [NewJob(id=new_id(), name=name, input="1", queue=q) for name, q in (("a", "q"), ("b", "q"), ("c", "p"))]
    await driver.enqueue(rows)
    await driver.claim(ClaimAsk("w-1", {"q": 1}, ("a",), 1, timedelta(microseconds=1)))
    await driver.pause("p", actor="ops", reason=None, duration=None)
    return [row.id for row in rows]


def screens(job: UUID) -> dict[str, Needs]:
    page = PageAsk("state:dead")
    return {
        "incident": Needs(overview=True),
        "queues": Needs(queues=True),
        "queues by tenant": Needs(tally=TallyAsk("state:ready", Field.TENANT)),
        "jobs": Needs(page=PageAsk("")),
        "leases": Needs(leases=True, workers=True),
        "dead": Needs(causes="state:dead", page=page),
        "dead by job": Needs(tally=TallyAsk("state:dead", Field.JOB), page=page),
        "run": Needs(job=job),
        "why": Needs(why=job),
        "workers": Needs(workers=True, leases=True, leader=True),
        "backfills": Needs(backfills=True),
        "tasks": Needs(tasks=True, slots="nightly", leader=True),
        "outbox": Needs(outbox=OutboxAsk(), health=True),
        "activity": Needs(activity=ActivityAsk()),
        "database": Needs(health=True),
        "following a canary": Needs(causes="state:dead", page=page).following(job),
    }


SCREENS = tuple(screens(UUID(int=0)))


@pytest.mark.parametrize("name", SCREENS)
async def test_no_refresh_is_more_than_six_statements_and_all_of_them_only_read(
    inspector: Inspector, jobs: list[UUID], counted: Counted, name: str
) -> None:
    clock = [0.0]
    reader = Reader(inspector, lambda: clock[0])
    for job in jobs:
        needs = screens(job)[name]
        for _ in range(4):
            counted.read_only.clear()
            frame = await reader.read(needs)
            assert frame.failures == {}
            assert 1 <= len(counted.read_only) <= MOST
            assert all(counted.read_only)
            clock[0] += BARS_EVERY / 2
        assert frame.overview is not None


async def test_the_bars_have_a_turn_of_their_own_and_an_act_shows_on_the_screen_first(
    inspector: Inspector, jobs: list[UUID]
) -> None:
    clock = [0.0]
    reader = Reader(inspector, lambda: clock[0])
    needs = Needs(page=PageAsk("state:ready"))
    first, second = await reader.read(needs), await reader.read(needs)
    assert (first.overview, second.overview is not None) == (None, True)
    assert second.page == first.page
    await inspector.driver.cancel([jobs[1]])
    reader.stale()
    third, fourth = await reader.read(needs), await reader.read(needs)
    assert third.page is not None
    assert len(third.page.rows) == 1
    assert third.overview == second.overview
    assert fourth.overview is not None
    assert fourth.overview.as_of > third.overview.as_of


async def test_a_read_that_takes_too_long_is_ended_by_the_server(inspector: Inspector, pg_url: str) -> None:
    links = inspector.driver.inspect._links  # type: ignore[attr-defined]
    assert await links.fetchval("select current_setting('statement_timeout')") == "2s"
    assert await links.fetchval("select current_setting('transaction_read_only')") == "on"
    with pytest.raises(DriverUnavailable) as refused:
        await links.fetchval("select pg_sleep(10)")
    assert isinstance(refused.value.__cause__, asyncpg.QueryCanceledError)


async def test_to_look_up_a_name_that_was_mistyped_costs_no_more_than_a_refresh(
    inspector: Inspector, jobs: list[UUID], counted: Counted
) -> None:
    told = await inspector.unheard("queue:qq job:charge tenant:acme")
    assert [each.field for each in told] == [Field.QUEUE, Field.JOB, Field.TENANT]
    assert len(counted.read_only) <= MOST
    assert all(counted.read_only)
