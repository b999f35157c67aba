from __future__ import annotations

from functools import partial

import pytest

from tests.integration.postgres.conftest import settlement
from ultijobs._queue.claims import Verdict
from ultijobs._queue.records import JobState, Outcome
from ultijobs.errors import DriverUnavailable, RightsMissing
from ultijobs.postgres import PostgresDriver

GRANTS = """
grant usage on schema public to {role};
grant select, insert, update, delete on all tables in schema public to {role};
grant usage on all sequences in schema public to {role};
grant execute on all functions in schema public to {role};
"""


@pytest.fixture
async def role(pg_url, database):
    """A role without any right to make tables, and the URL to connect as it."""
    name = "plain_" + pg_url[-8:]
    await database.execute(f"create role {name} login; revoke create on schema public from public")
    yield name, pg_url.replace("postgres@", f"{name}@")
    await database.execute(f"drop owned by {name}; drop role {name}")


async def test_a_worker_needs_no_right_to_make_tables(role, database, job, ask):
    name, url = role
    await database.execute(GRANTS.format(role=name))
    driver = PostgresDriver(url)
    await driver.open("worker")
    signals = []
    async with driver.subscribe(signals.append):
        await driver.enqueue([job() for _ in range(3)])
        one, two, three = await driver.claim(ask())
        verdicts = await driver.settle(
            [settlement(one), settlement(two, Outcome.RETRIED), settlement(three, Outcome.DEAD)]
        )
        assert verdicts == [Verdict.SETTLED] * 3
        assert await driver.reap([]) == []
        [cancelled] = await driver.cancel([two.id])
        assert cancelled.done
        await driver.housekeep()
        assert (await driver.inspect.job(two.id)).state == JobState.CANCELLED
    await driver.close()


async def test_a_role_without_rights_is_told_which_it_lacks(role):
    _, url = role
    driver = PostgresDriver(url)
    with pytest.raises(RightsMissing, match="cannot be read by this role") as refusal:
        await driver.open()
    assert refusal.value.fix == "ultijobs explain X_RIGHTS_MISSING"
    await driver.close()


async def test_a_role_that_may_only_look_is_told_so_where_it_writes(role, database, job):
    name, url = role
    await database.execute(
        f"grant usage on schema public to {name}; grant select on all tables in schema public to {name}"
    )
    driver = PostgresDriver(url)
    await driver.open()
    assert await driver.inspect.attempts(job().id) == []
    for write in (partial(driver.enqueue, [job()]), driver.housekeep):
        with pytest.raises(RightsMissing, match=f"{name}@.* refuses this role: permission denied for"):
            await write()
    await driver.close()


async def test_a_read_only_database_is_read_and_refuses_writes_as_away(pg_url, database, driver, job):
    [enqueued] = await driver.enqueue([job()])
    await database.execute(f"alter database {pg_url.rpartition('/')[2]} set default_transaction_read_only = on")
    reading = PostgresDriver(pg_url)
    await reading.open("cli")
    assert (await reading.inspect.job(enqueued.id)).state == JobState.READY
    with pytest.raises(DriverUnavailable, match=r"takes no writes: .* read-only") as refused:
        await reading.enqueue([job()])
    assert "primary" in refused.value.fix
    await database.execute("set default_transaction_read_only = off")
    await database.execute(f"alter database {pg_url.rpartition('/')[2]} reset default_transaction_read_only")
    assert len(await reading.enqueue([job()])) == 1
    await reading.close()
