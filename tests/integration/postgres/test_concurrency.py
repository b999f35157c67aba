from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import timedelta

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._queue.claims import Beat, CrashPolicy, Verdict
from ultijobs._queue.records import JobState, Outcome, RequeueAsk, StopReason, UniqueMode
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.postgres import PostgresDriver


@pytest.fixture
async def drivers(pg_url):
    made = [PostgresDriver(pg_url) for _ in range(4)]
    for driver in made:
        await driver.open("worker")
    yield made
    for driver in made:
        await driver.close()


async def test_no_row_goes_to_two_claimers_and_none_is_lost(drivers, job, ask):
    ids = [answer.id for answer in await drivers[0].enqueue([job() for _ in range(1500)])]
    taken = Counter()

    async def claim(driver: PostgresDriver) -> None:
        while claimed := await driver.claim(ask(random.randint(1, 40))):
            taken.update(each.id for each in claimed)

    await asyncio.gather(*(claim(driver) for driver in drivers))
    assert taken == Counter(ids)


async def test_lease_numbers_are_never_reused(drivers, job, ask):
    await drivers[0].enqueue([job()])
    seen = []
    for _ in range(5):
        [claimed] = await drivers[0].claim(ask())
        seen.append(claimed.lease_no)
        await drivers[0].settle([settlement(claimed, Outcome.RETURNED)])
    assert seen == sorted(set(seen))


class Crowd:
    """Everything that writes job rows, at once, over the same ids, until each job has ended."""

    def __init__(self, ask, total: int) -> None:
        self.ask = ask
        self.total = total
        self.in_flight = {}
        self.acknowledged = Counter()
        self.cancelled = set()

    @property
    def over(self) -> bool:
        return len(self.acknowledged.keys() | self.cancelled) == self.total

    def some(self) -> list:
        return random.sample(list(self.in_flight.values()), min(100, len(self.in_flight)))

    async def work(self, driver: PostgresDriver) -> None:
        while not self.over:
            claimed = await driver.claim(self.ask(60, lease=timedelta(seconds=0.25)))
            self.in_flight |= {each.id: each for each in claimed}
            random.shuffle(claimed)
            given = [
                settlement(each, random.choice([Outcome.OK, Outcome.OK, Outcome.RETRIED, Outcome.SUSPENDED]))
                for each in claimed
            ]
            for each, verdict in zip(given, await driver.settle(given), strict=True):
                if each.outcome is Outcome.OK and verdict is Verdict.SETTLED:
                    self.acknowledged[each.id] += 1
            await asyncio.sleep(0)

    async def renew(self, driver: PostgresDriver) -> None:
        link = driver.lease_link()
        await link.open()
        while not self.over:
            await asyncio.sleep(0)
            await link.renew([Beat(each.id, each.lease_no, step="s") for each in self.some()], timedelta(seconds=0.25))
        await link.close()

    async def step(self, driver: PostgresDriver) -> None:
        while not self.over:
            await asyncio.sleep(0)
            await driver.record_steps(
                [
                    StepWrite(each.id, each.run_id, each.lease_no, "s", StepKind.RUN, StepStatus.COMPLETED, 0)
                    for each in self.some()
                ]
            )

    async def reap(self, driver: PostgresDriver) -> None:
        soon = CrashPolicy("send", "fixed", timedelta(milliseconds=5), timedelta(milliseconds=5))
        while not self.over:
            await driver.reap([soon])
            await asyncio.sleep(0.01)

    async def cancel(self, driver: PostgresDriver) -> None:
        while not self.over:
            ids = [each.id for each in self.some()[:3]]
            self.cancelled |= {result.id for result in await driver.cancel(ids) if result.done}
            await asyncio.sleep(0.02)

    async def requeue(self, driver: PostgresDriver) -> None:
        while not self.over:
            ids = [each.id for each in self.some() if each.id in self.acknowledged]
            assert not any(result.done for result in await driver.requeue(RequeueAsk(ids=tuple(ids))))
            await asyncio.sleep(0.01)


async def test_all_that_writes_jobs_at_once_does_not_deadlock_and_each_job_ends_once(drivers, database, job, ask):
    answers = await drivers[0].enqueue([job(max_attempts=1000) for _ in range(300)])
    crowd = Crowd(ask, len(answers))
    one, two, three, four = drivers
    await asyncio.wait_for(
        asyncio.gather(
            crowd.work(one),
            crowd.work(two),
            crowd.renew(three),
            crowd.step(four),
            crowd.reap(three),
            crowd.cancel(four),
            crowd.requeue(three),
        ),
        60,
    )
    assert set(crowd.acknowledged.values()) == {1}
    assert not crowd.acknowledged.keys() & crowd.cancelled
    assert await database.fetchval("select deadlocks from pg_stat_database where datname = current_database()") == 0
    assert await database.fetchval("select count(*) from x_jobs") == 0
    assert await database.fetchval("select count(distinct id) = count(*) from x_jobs_done")


async def test_bulk_enqueues_of_the_same_keys_in_any_order_do_not_deadlock(drivers, database, job):
    keys = [str(i) for i in range(300)]

    async def enqueue(driver: PostgresDriver) -> int:
        inserted = 0
        for _ in range(3):
            random.shuffle(keys)
            answers = await driver.enqueue([job(idempotency_key=key, unique=UniqueMode.NOT_RUNNING) for key in keys])
            inserted += sum(not answer.deduped for answer in answers)
        return inserted

    inserted = await asyncio.gather(*(enqueue(driver) for driver in drivers))
    assert sum(inserted) == len(keys)
    assert await database.fetchval("select deadlocks from pg_stat_database where datname = current_database()") == 0


async def test_a_lapsed_claim_changes_nothing_whatever_it_tries(drivers, database, job, ask):
    driver = drivers[0]
    await driver.enqueue([job()])
    [old] = await driver.claim(ask(lease=timedelta(milliseconds=1)))
    await eventually(lambda: database.fetchval("select lease_until < now() from x_jobs"))
    await driver.reap([])
    await database.execute("update x_jobs set run_at = now()")
    [new] = await drivers[1].claim(ask())
    before = await database.fetchrow("select * from x_jobs")
    verdicts = [(await driver.settle([settlement(old, outcome)]))[0] for outcome in Outcome]
    assert set(verdicts[:-3]) | set(verdicts[-2:]) == {Verdict.LOST}
    step = StepWrite(old.id, old.run_id, old.lease_no, "s", StepKind.RUN, StepStatus.COMPLETED, 0, output="1")
    assert not (await driver.record_steps([step]))[0].held
    link = driver.lease_link()
    await link.open()
    assert [answer.value for answer in await link.renew([Beat(old.id, old.lease_no)], timedelta(days=1))] == ["lost"]
    await link.close()
    assert await database.fetchrow("select * from x_jobs") == before
    assert await driver.settle([settlement(new)]) == [Verdict.SETTLED]


async def test_a_job_that_takes_down_its_workers_is_dead_and_names_them(driver, database, job, ask):
    await driver.enqueue([job(max_attempts=3)])
    for name in ("w-1", "w-2", "w-1"):
        await database.execute("update x_jobs set run_at = now()")
        await driver.claim(ask(worker_id=name, lease=timedelta(0)))
        [reaped] = await driver.reap([])
    assert reaped.state is JobState.DEAD
    row = await database.fetchrow("select * from x_jobs")
    assert (row["stop_reason"], row["error_code"]) == (StopReason.LEASE_EXHAUSTED, "X_JOB_MAX_ATTEMPTS")
    assert row["last_error"] == "X_JOB_MAX_ATTEMPTS: attempt 3 of 3 took down w-1, w-2"
    attempts = await database.fetch("select outcome, error_code, worker_id from x_job_attempts order by lease_no")
    assert [(r["outcome"], r["error_code"], r["worker_id"]) for r in attempts] == [
        ("lost", "X_JOB_LEASE_LOST", name) for name in ("w-1", "w-2", "w-1")
    ]


async def test_a_cap_lane_is_left_alone(driver, job, ask):
    await driver.enqueue([job(lane="n:send"), job()])
    assert len(await driver.claim(ask())) == 1
    assert await driver.claim(ask()) == []


async def test_the_search_path_of_the_server_does_not_matter(pg_url, job, ask):
    connection = await asyncpg.connect(pg_url)
    await connection.execute(f"alter database {pg_url.rpartition('/')[2]} set search_path = pg_temp")
    await connection.close()
    driver = PostgresDriver(pg_url)
    await driver.open()
    await driver.enqueue([job()])
    [claimed] = await driver.claim(ask())
    assert await driver.settle([settlement(claimed)]) == [Verdict.SETTLED]
    await driver.close()
