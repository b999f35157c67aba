"""Caps, allowances, rates and turns, as workers keep them: on both drivers, by what ran when."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from ultijobs import App, Limits, Rate, Worker, job
from ultijobs._queue.claims import ClaimAsk, ClaimedJob
from ultijobs.memory import MemoryDriver
from ultijobs.postgres import PostgresDriver


class Ask(BaseModel):
    n: int
    org: str = "acme"
    seconds: float = 0.0


@dataclass
class Seen:
    """What ran: starts by time, how many at once, and the most of it."""

    starts: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    now: Counter[str] = field(default_factory=Counter[str])
    most: Counter[str] = field(default_factory=Counter[str])

    async def run(self, what: str, seconds: float) -> None:
        self.starts.append((time.monotonic(), what))
        self.now[what] += 1
        self.most[what] = max(self.most[what], self.now[what])
        await asyncio.sleep(seconds)
        self.now[what] -= 1

    def times(self, what: str) -> list[float]:
        return [at for at, one in self.starts if one == what]


seen = Seen()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    seen.__init__()  # type: ignore[misc]
    return


def key(ask: Ask) -> str:
    return f"{ask.org}-{ask.n}"


@job(Ask, idempotency_key=key, tenant=lambda ask: ask.org)
async def serve(input: Ask) -> None:
    await seen.run(input.org, input.seconds)


@job(Ask, idempotency_key=key, tenant="none", concurrency=1)
async def alone(input: Ask) -> None:
    await seen.run("alone", input.seconds)


@job(Ask, idempotency_key=key, tenant="none", concurrency=1)
async def stubborn(input: Ask) -> None:
    """Takes its time to end, whoever cancels it."""
    ending = asyncio.create_task(seen.run("stubborn", input.seconds))
    while not ending.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ending])


@job(Ask, idempotency_key=key, tenant="none", queue="mail")
async def mail(input: Ask) -> None:
    await seen.run("mail", input.seconds)


@pytest.fixture(params=["memory", "postgres"])
def made(request: pytest.FixtureRequest) -> Callable[..., App[Any]]:
    """An application with these limits on one of the drivers."""
    driver = MemoryDriver() if request.param == "memory" else request.getfixturevalue("pg_url")

    def make(**limits: Any) -> App[Any]:
        return App(jobs=[serve, alone, stubborn, mail], driver=driver, limits=Limits(**limits))

    return make


async def test_a_limited_tenant_holds_up_nobody_and_is_never_above_its_limit(made):
    async with made(per_tenant=2) as app:
        await app.enqueue_many(serve, [Ask(n=n, seconds=0.05) for n in range(60)])
        async with working(app, concurrency=8):
            await eventually(lambda: seen.now["acme"] == 2)
            began = time.monotonic()
            await app.enqueue_many(serve, [Ask(n=n, org="globex", seconds=0.05) for n in range(6)])
            await eventually(lambda: len(seen.times("globex")) == 6)
            assert seen.times("globex")[0] - began < 1.0
            assert len(seen.times("acme")) < 60
            await eventually(lambda: len(seen.times("acme")) == 60, within=20)
        assert seen.most["acme"] == 2


async def test_a_capped_job_holds_up_nobody_and_follows_at_once_when_its_slot_is_free(made):
    async with made() as app:
        await app.enqueue_many(alone, [Ask(n=n, seconds=0.1) for n in range(8)])
        await app.enqueue_many(serve, [Ask(n=n) for n in range(5)])
        async with working(app, poll="30s"), working(app, poll="30s", name="w2"):
            await eventually(lambda: len(seen.times("acme")) == 5)
            assert len(seen.times("alone")) < 8
            await eventually(lambda: len(seen.times("alone")) == 8, within=15)
        assert seen.most["alone"] == 1


async def test_a_cancelled_job_keeps_its_slot_in_the_fleet_until_its_body_has_ended(made):
    async with made() as app:
        first = await app.enqueue(stubborn, Ask(n=0, seconds=1.0))
        async with working(app), working(app, name="w2"):
            await eventually(lambda: seen.now["stubborn"] == 1)
            await app.enqueue(stubborn, Ask(n=1))
            (done,) = await app.driver.cancel([first.id])
            assert done.done
            await eventually(lambda: len(seen.times("stubborn")) == 2)
        assert seen.most["stubborn"] == 1
        began, followed = seen.times("stubborn")
        assert followed - began < 2.5, "let go by the body's end, not by the lease's"


async def test_a_rate_lets_the_next_start_as_soon_as_its_window_allows(made):
    async with made(tenant_rate=Rate(3, per="1s")) as app:
        await app.enqueue_many(serve, [Ask(n=n) for n in range(7)])
        await app.enqueue(serve, Ask(n=1, org="globex"))
        async with working(app, poll="30s"):
            await eventually(lambda: len(seen.starts) == 8, within=10)
        at = seen.times("acme")
        assert seen.times("globex")[0] - at[0] < 0.9
        assert all(at[n + 3] - at[n] >= 0.95 for n in range(4))
        assert at[6] - at[0] < 6


async def test_queues_and_processes_have_their_own_limits(made):
    async with made(per_process=3, per_queue={"mail": 1}) as app:
        await app.enqueue_many(mail, [Ask(n=n, seconds=0.05) for n in range(5)])
        await app.enqueue_many(serve, [Ask(n=n, seconds=0.05) for n in range(12)])
        async with working(app, concurrency=10):
            await eventually(lambda: len(seen.starts) == 17, within=10)
        assert seen.most["mail"] == 1
        assert seen.most["acme"] in {2, 3}


async def test_tenants_of_a_fair_queue_take_turns(made):
    async with made(fair=["default"]) as app:
        await app.enqueue_many(serve, [Ask(n=n) for n in range(30)])
        await app.enqueue_many(serve, [Ask(n=n, org="globex") for n in range(5)])
        async with working(app, concurrency=2):
            await eventually(lambda: len(seen.starts) == 35, within=10)
        first = [org for _, org in seen.starts[:10]]
        assert Counter(first)["globex"] >= 4


async def test_until_idle_runs_what_a_limit_lets_through_and_leaves_what_a_rate_holds_back(made):
    async with made(per_tenant=1, tenant_rate=Rate(4, per="1h")) as app:
        await app.enqueue_many(serve, [Ask(n=n) for n in range(6)])
        await app.enqueue_many(alone, [Ask(n=n) for n in range(3)])
        await asyncio.wait_for(Worker(app, lease="3s", poll="0.1s").run_until_idle(), 15)
        assert len(seen.times("acme")) == 4
        assert len(seen.times("alone")) == 3
        stats = await app.driver.inspect.stats()
        assert stats.totals["ready"].value == 2


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When claims were sent to Postgres."""
    sent: list[float] = []
    claim = PostgresDriver.claim

    async def noted(self: PostgresDriver, ask: ClaimAsk) -> list[ClaimedJob]:
        sent.append(time.monotonic())
        return await claim(self, ask)

    monkeypatch.setattr(PostgresDriver, "claim", noted)
    return sent


async def test_a_refusal_writes_nothing(pg_url: str, asked: list[float]):
    database = await asyncpg.connect(pg_url)
    versions = "select id, xmin::text, ctid::text, attempt from x_jobs order by id"
    async with App(jobs=[serve, alone], driver=pg_url, limits=Limits(per_tenant=1)) as app:
        await app.enqueue_many(serve, [Ask(n=n, seconds=30) for n in range(5)])
        await app.enqueue_many(alone, [Ask(n=n, seconds=30) for n in range(5)])
        before = await database.fetch(versions)
        async with working(app, poll="0.05s"):
            await eventually(lambda: len(seen.starts) == 2)
            since = len(asked)
            await eventually(lambda: len(asked) >= since + 5)
            after = await database.fetch(versions)
        assert len(set(after) - set(before)) == 2
    await database.close()


async def test_what_is_held_back_makes_no_worker_search_in_a_loop(pg_url: str, asked: list[float]):
    async with App(jobs=[serve, alone], driver=pg_url, limits=Limits(per_tenant=1)) as app:
        await app.enqueue_many(serve, [Ask(n=n, seconds=30) for n in range(5)])
        await app.enqueue_many(alone, [Ask(n=n, seconds=30) for n in range(5)])
        async with working(app, poll="0.5s"):
            await eventually(lambda: len(seen.starts) == 2)
            since = len(asked)
            await eventually(lambda: len(asked) >= since + 5, within=20)
            assert asked[since + 4] - asked[since] >= 1.0


async def test_rows_from_before_a_cap_was_declared_are_kept_to_it(pg_url: str):
    @job(Ask, idempotency_key=key, tenant="none", name="alone")
    async def before(input: Ask) -> None:
        raise AssertionError("the older release runs nothing here")

    async with App(jobs=[before], driver=pg_url) as older:
        await older.enqueue_many(before, [Ask(n=n, seconds=0.05) for n in range(4)])
    async with App(jobs=[alone], driver=pg_url) as app:
        async with working(app):
            await eventually(lambda: len(seen.starts) == 4)
        assert seen.most["alone"] == 1


async def test_rows_that_were_enqueued_without_the_limits_hold_up_nobody_and_are_filed(pg_url: str):
    async with App(jobs=[serve], driver=pg_url) as without:
        await without.enqueue_many(serve, [Ask(n=n, seconds=0.05) for n in range(3_000)])
        await without.enqueue_many(serve, [Ask(n=n, org=f"org-{n % 20}") for n in range(200)])
    async with App(jobs=[serve], driver=pg_url, limits=Limits(per_tenant=2)) as app:
        async with working(app):
            await eventually(lambda: sum(org != "acme" for _, org in seen.starts) == 200, within=20)
        assert seen.most["acme"] == 2
    database = await asyncpg.connect(pg_url)
    waiting = await database.fetch("select distinct lane from x_jobs where state = 'ready'")
    await database.close()
    assert [row["lane"] for row in waiting] == ["t:acme"]
