"""Times that SQL may set and no datetime holds: such a row is claimed in its order, and stops no other."""

from datetime import timedelta

import pytest

from ultijobs.inspection import ANY, Inspector, Sort

PAST = ["-infinity", "4000-01-01 BC", "0001-01-01 00:00Z"]
FUTURE = ["infinity", "20000-01-01", "9999-12-31 23:59Z"]


@pytest.mark.parametrize("past", PAST)
async def test_a_job_due_since_before_all_dates_is_claimed_once_and_first(driver, database, ask, job, past):
    old, new, later = job(), job(), job()
    await driver.enqueue([old, new])
    await database.execute(f"update x_jobs set run_at = '{past}', created_at = '{past}' where id = $1", old.id)
    assert [claimed.id for claimed in await driver.claim(ask(1))] == [old.id]
    assert [claimed.id for claimed in await driver.claim(ask(1))] == [new.id]
    await driver.enqueue([later])
    await database.execute(f"update x_jobs set run_at = '{past}' where id = $1", later.id)
    driver._claimer._book.rescan_soon()
    assert [claimed.id for claimed in await driver.claim(ask(1))] == [later.id]


@pytest.mark.parametrize("future", FUTURE)
async def test_a_job_that_is_never_due_holds_back_no_other(driver, database, ask, job, future):
    never, high, now = job(), job(priority=1), job()
    await driver.enqueue([never, high, now])
    await database.execute(f"update x_jobs set run_at = '{future}' where id = any($1)", [never.id, high.id])
    assert [claimed.id for claimed in await driver.claim(ask(3))] == [now.id]
    assert await driver.claim(ask(3)) == []
    assert (await driver.next_due(["default"], ["send"])).days > 365


@pytest.mark.parametrize("at", [*PAST, *FUTURE])
async def test_a_time_that_no_datetime_holds_is_shown_beside_the_others(driver, database, job, at):
    timeless, other = job(), job()
    await driver.enqueue([timeless, other])
    times = ", ".join(f"{column} = '{at}'" for column in ("run_at", "due_at", "created_at", "updated_at"))
    await database.execute(f"update x_jobs set {times} where id = $1", timeless.id)
    inspector = Inspector(driver)
    rows = (await inspector.jobs()).rows
    detail = await inspector.job(timeless.id)
    assert {row.id for row in rows} == {timeless.id, other.id}
    assert detail.row.run_at.utcoffset() == timedelta(0)
    due = await driver.inspect.jobs(ANY, sort=Sort.DUE, limit=1)
    rest = await driver.inspect.jobs(ANY, sort=Sort.DUE, after=due.next, limit=1)
    assert {row.id for row in (*due.rows, *rest.rows)} == {timeless.id, other.id}
    assert (await inspector.why(timeless.id)).state in {"ready", "delayed"}
