"""Events among connections: whoever commits when, no wait misses its event, and no publisher blocks a worker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.integration.postgres.conftest import settlement
from tests.support.eventually import eventually
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat, BeatAnswer, ClaimedJob, Verdict
from ultijobs._queue.events import Look, NewEvent, Seen, Sight
from ultijobs._queue.records import Outcome
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.postgres import PostgresDriver

HOUR = timedelta(hours=1)


def event(key: str | None = None, name: str = "paid") -> NewEvent:
    return NewEvent(new_id(), name, "null", key)


def begun(claimed: ClaimedJob, match: str | None) -> StepWrite:
    return StepWrite(
        claimed.id, claimed.run_id, claimed.lease_no, "wait", StepKind.WAIT, StepStatus.WAITING, 1, wake_in=HOUR,
        event="paid", match=match,
    )  # fmt: skip


def look_of(claimed: ClaimedJob) -> Look:
    return Look(claimed.id, claimed.run_id, claimed.lease_no, "wait")


async def wait(driver: PostgresDriver, claimed: ClaimedJob, match: str | None = None) -> Seen:
    """What a handler's first visit does."""
    await driver.record_steps([begun(claimed, match)])
    [seen] = await driver.events.look([look_of(claimed)])
    return seen


async def park(driver: PostgresDriver, claimed: ClaimedJob, match: str | None = None) -> Seen:
    seen = await wait(driver, claimed, match)
    if seen.sight is Sight.NOTHING:
        verdicts = await driver.settle([settlement(claimed, Outcome.SUSPENDED, run_at=seen.wake_at)])
        assert verdicts == [Verdict.SETTLED]
    return seen


@pytest.fixture
async def second(pg_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(pg_url)
    yield connection
    await connection.close()


async def due(database: Any, id: UUID) -> bool:
    return await database.fetchval("select run_at <= now() from x_jobs where id = $1", id)


class Unpublished(set[str]):
    """Keys of the events that nobody has published yet."""

    def take(self, key: str) -> bool:
        there = key in self
        self.discard(key)
        return there


async def sometimes_now(driver: PostgresDriver, key: str, unpublished: Unpublished) -> None:
    """Publishes and delivers it in the moment between a run's look and its parking."""
    if random.random() < 0.2 and unpublished.take(key):
        await driver.events.publish([event(key)])
        await driver.events.deliver()


async def test_no_event_is_missed_however_waits_publishers_and_deliveries_interleave(
    pg_url: str, driver: PostgresDriver, database: Any, job: Any, ask: Any
) -> None:
    runs, publishers = 240, 12
    await driver.enqueue([job() for _ in range(runs)])
    claimed = await driver.claim(ask(runs))
    assert len(claimed) == runs
    keys = {each.id: f"o-{number}" for number, each in enumerate(claimed)}
    seen: dict[UUID, Seen] = {}
    over = asyncio.Event()
    unpublished = Unpublished(keys.values())

    async def waiter(one: ClaimedJob) -> None:
        await asyncio.sleep(random.uniform(0, 0.6))
        await driver.record_steps([begun(one, keys[one.id])])
        if random.random() < 0.3:
            await asyncio.sleep(random.uniform(0, 0.03))
        [seen[one.id]] = await driver.events.look([look_of(one)])
        if random.random() < 0.3:
            await asyncio.sleep(random.uniform(0, 0.03))
        if seen[one.id].sight is Sight.NOTHING:
            await sometimes_now(driver, keys[one.id], unpublished)
            await driver.settle([settlement(one, Outcome.SUSPENDED, run_at=seen[one.id].wake_at)])

    async def publisher(share: list[str]) -> None:
        connection = await asyncpg.connect(pg_url)
        for key in filter(unpublished.take, share):
            if random.random() < 0.3:
                await driver.events.publish([event(key)])
                continue
            async with connection.transaction(isolation=random.choice(["read_committed", "serializable"])):
                await driver.events.publish([event(key)], tx=connection)
                await asyncio.sleep(random.uniform(0, 0.05))
        await connection.close()

    async def deliverer() -> None:
        while not over.is_set():
            await driver.events.deliver()
            await asyncio.sleep(random.uniform(0, 0.01))

    shuffled = random.sample(sorted(keys.values()), runs)
    delivering = [asyncio.create_task(deliverer()) for _ in range(2)]
    await asyncio.gather(
        *(waiter(one) for one in claimed), *(publisher(shuffled[at::publishers]) for at in range(publishers))
    )
    over.set()
    await asyncio.gather(*delivering)
    await driver.events.deliver()
    asleep = [one for one in claimed if seen[one.id].sight is Sight.NOTHING]
    assert asleep
    assert len(asleep) < runs
    missed = [keys[one.id] for one in asleep if not await due(database, one.id)]
    assert missed == []
    assert await database.fetchval("select count(*) from x_job_events where not delivered") == 0


async def test_a_publisher_whose_transaction_stays_open_blocks_no_worker_and_no_other_publisher(
    driver: PostgresDriver, database: Any, second: Any, job: Any, ask: Any
) -> None:
    await driver.enqueue([job(), job(), job()])
    running, parked, cancelled = await driver.claim(ask())
    await driver.record_steps([begun(running, None)])
    await park(driver, parked)
    await park(driver, cancelled)
    transaction = database.transaction(isolation="repeatable_read")
    await transaction.start()
    await driver.events.publish([event("o-1")], tx=database)
    async with asyncio.timeout(20):
        link = driver.lease_link()
        await link.open()
        assert await link.renew([Beat(running.id, running.lease_no)], HOUR) == [BeatAnswer.HELD]
        await link.close()
        await driver.settle([settlement(running, Outcome.SUSPENDED, run_at=await driver.inspect.now() + HOUR)])
        [done] = await driver.cancel([cancelled.id])
        assert done.done
        assert await driver.events.publish([event("o-2")]) == 2
        async with second.transaction():
            await driver.events.publish([event("o-3")], tx=second)
    await transaction.commit()
    assert await driver.events.deliver() == 0
    assert {each.id for each in await driver.claim(ask())} == {running.id, parked.id}


async def test_a_transaction_that_began_before_the_run_publishes_at_its_own_time(
    driver: PostgresDriver, database: Any, job: Any, ask: Any
) -> None:
    async with database.transaction():
        await database.fetchval("select now()")
        await driver.enqueue([job()])
        [claimed] = await driver.claim(ask())
        await driver.events.publish([event("o-1")], tx=database)
    assert (await wait(driver, claimed)).sight is Sight.EVENT


async def test_an_event_whose_publisher_died_before_it_was_delivered_is_delivered_by_the_next(
    driver: PostgresDriver, database: Any, job: Any, ask: Any
) -> None:
    await driver.enqueue([job()])
    [claimed] = await driver.claim(ask())
    await park(driver, claimed)
    # A connection without a transaction: committed at once, and nobody goes on to deliver it.
    await driver.events.publish([event()], tx=database)
    assert not await due(database, claimed.id)
    assert await driver.events.deliver() == 1
    assert await due(database, claimed.id)


async def test_an_event_of_more_runs_than_one_statement_wakes_reaches_them_all(
    driver: PostgresDriver, database: Any
) -> None:
    runs = 5_500
    await database.execute(
        """
        insert into x_jobs (id, run_id, name, state, run_at)
        select v.id, v.id, 'send', 'suspended', now() + interval '1 hour'
          from (select md5(i::text)::uuid as id from generate_series(1, $1::int) i) v""",
        runs,
    )
    await database.execute(
        "insert into x_job_steps (run_id, name, kind, status, position, lease_no, event, wake_at) "
        "select id, 'wait', 'wait', 'waiting', 1, 0, 'paid', run_at from x_jobs"
    )
    assert await driver.events.publish([event()]) == runs
    assert await database.fetchval("select count(*) from x_jobs where run_at > now()") == 0
    assert await database.fetchval("select delivered from x_job_events")


async def test_the_database_itself_gives_an_event_to_a_run_once(
    driver: PostgresDriver, database: Any, job: Any, ask: Any
) -> None:
    await driver.enqueue([job()])
    [claimed] = await driver.claim(ask())
    await driver.events.publish([event()])
    await wait(driver, claimed)
    with pytest.raises(asyncpg.UniqueViolationError):
        await database.execute(
            "insert into x_job_steps (run_id, name, status, position, lease_no, event_id) "
            "select run_id, 'again', 'completed', 2, 1, event_id from x_job_steps"
        )


async def test_a_look_beside_another_of_the_same_run_waits_for_none_and_takes_another_event(
    driver: PostgresDriver, job: Any, ask: Any
) -> None:
    await driver.enqueue([job()])
    [claimed] = await driver.claim(ask())
    await driver.events.publish([event(), event()])
    names = ("a", "b")
    await driver.record_steps(
        [
            StepWrite(claimed.id, claimed.run_id, claimed.lease_no, name, StepKind.WAIT, StepStatus.WAITING, 1,
                      wake_in=HOUR, event="paid")
            for name in names
        ]
    )  # fmt: skip
    looks = [Look(claimed.id, claimed.run_id, claimed.lease_no, name) for name in names]
    seen = await driver.events.look(looks)
    assert [each.sight for each in seen] == [Sight.EVENT, Sight.EVENT]
    assert seen[0].output != seen[1].output


async def test_a_commit_tells_who_listens_within_the_turn(driver: PostgresDriver, database: Any) -> None:
    heard: list[str] = []
    async with driver.subscribe(lambda signal: heard.append(signal.kind.value)):
        async with database.transaction():
            await driver.events.publish([event()], tx=database)
            assert "event" not in heard
        await eventually(lambda: "event" in heard)
