"""A pass from its enqueue to its last line: what it reads, what it marks, what it refuses, how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest

from tests.integration.backfill.conftest import passes_of, row_of, run, until
from tests.support.eventually import eventually
from ultijobs import App, BatchSource, Context, Limits, RetryPolicy, Worker, backfill, current
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._ids import new_id
from ultijobs._metrics import series
from ultijobs._queue.records import NewJob
from ultijobs._queue.telling import WorkerOrder
from ultijobs._queue.views import Count
from ultijobs.errors import BackfillApplied, DriverUnavailable, Invariant
from ultijobs.inspection import Inspector
from ultijobs.memory import MemoryDriver

AT_ONCE = RetryPolicy(attempts=3, delay=0, jitter=False)
FAST = 10_000.0
Rows = Sequence[Any]


class Shelf:
    """Rows in memory that a source pages through, and what was handled."""

    def __init__(self, size: int, page: int = 10) -> None:
        self.rows: dict[int, bool] = dict.fromkeys(range(1, size + 1), False)
        self.page = page
        self.read: list[Any] = []
        self.handled: list[int] = []

    async def pages(self, cursor: Any) -> tuple[list[int], Any]:
        self.read.append(cursor)
        found = sorted(row for row, done in self.rows.items() if not done and (cursor is None or row > cursor))[
            : self.page
        ]
        return found, found[-1] if len(found) == self.page else None

    async def handle(self, rows: Rows, ctx: Any) -> None:
        self.handled += rows
        self.rows |= dict.fromkeys(rows, True)

    def left(self) -> int:
        return sum(not done for done in self.rows.values())


def declared(shelf: Shelf, handle: Any = None, **options: Any) -> BackfillHandle[int]:
    given: dict[str, Any] = {"tenant": "none", "rate": FAST, "retry": AT_ONCE, "name": "fill", **options}
    return backfill(BatchSource.pages(shelf.pages), **given)(handle or shelf.handle)


def shop(*handles: BackfillHandle[Any], driver: Any = None, **options: Any) -> App[None]:
    return App(jobs=handles, driver=driver or MemoryDriver(), **options)


# -- from beginning to end -----------------------------------------------------------------------------
async def test_a_pass_handles_every_row_once_and_leaves_one_completed_line():
    shelf = Shelf(35)
    fill = declared(shelf, count=shelf.left)
    async with shop(fill) as app:
        answer = await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert shelf.handled == list(range(1, 36))
    assert shelf.read == [None, 10, 20, 30]
    assert (line.run_id, line.status, line.rows, line.batches) == (answer.run_id, "completed", 35, 4)
    assert (line.remaining, line.cursor, line.sweep, line.checksum) == (0, None, 0, fill.checksum)
    assert line.completed_at is not None
    counted = app.metrics.read()
    assert (counted[series.BACKFILL_ROWS], counted[series.BACKFILL_RUNNING]) == ({("fill",): 35}, {("fill",): 0})


async def test_an_empty_source_completes():
    fill = declared(Shelf(0))
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows, line.batches, line.remaining) == ("completed", 0, 0, None)


async def test_a_page_without_rows_is_no_end():
    async def pages(cursor: Any) -> tuple[list[int], Any]:
        return {None: ([1], "a"), "a": ([], "b"), "b": ([2], None)}[cursor]

    seen: list[int] = []

    @backfill(BatchSource.pages(pages), tenant="none", rate=FAST)
    async def fill(rows: Sequence[int], ctx: Context[None]) -> None:
        seen.extend(rows)

    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (seen, line.rows, line.batches) == ([1, 2], 2, 2)


async def test_a_failed_attempt_goes_on_at_the_page_that_failed():
    shelf = Shelf(50)

    async def once(rows: Rows, ctx: Context[None]) -> None:
        if 30 in rows and ctx.attempt == 1:
            raise OSError("disk")
        await shelf.handle(rows, ctx)

    fill = declared(shelf, once)
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert shelf.handled == list(range(1, 51))
    assert shelf.read == [None, 10, 20, 20, 30, 40, 50]
    assert (line.status, line.rows, line.batches) == ("completed", 50, 5)


async def test_a_pass_that_stopped_goes_on_at_its_cursor_when_it_is_retried():
    shelf = Shelf(50)
    broken = [True]

    async def never(rows: Rows, ctx: Context[None]) -> None:
        if 30 in rows and broken:
            raise OSError("disk")
        await shelf.handle(rows, ctx)

    fill = declared(shelf, never, retry=RetryPolicy(attempts=1))
    async with shop(fill) as app:
        answer = await fill.enqueue()
        await run(app)
        row = await row_of(app, "fill")
        assert (row.state, row.job_state, row.rows, row.cursor, row.error_code) == (
            "failed",
            "dead",
            20,
            "20",
            "OSError",
        )
        broken.clear()
        api = Inspector(app.driver)
        await api.apply(await api.plan("retry", [answer.id]))  # type: ignore[arg-type]
        assert (await row_of(app, "fill")).state == "running"
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows, shelf.handled) == ("completed", 50, list(range(1, 51)))
    assert shelf.read.count(None) == 1


async def test_the_handler_sees_its_context_and_operators_its_progress():
    seen: list[Any] = []
    shelf = Shelf(20)

    async def look(rows: Rows, ctx: Context[Any]) -> None:
        seen.append((current() is ctx, ctx.tenant, ctx.crossing, ctx.services, ctx.last_progress))
        await shelf.handle(rows, ctx)

    fill = declared(shelf, look, count=shelf.left, tenant="acme")
    across = declared(Shelf(5), look, name="across")
    async with shop(fill, across, context=lambda services, ctx: ctx.name) as app:
        await fill.enqueue()
        await run(app)
        assert seen[0][:4] == (True, "acme", None, "fill")
        assert (seen[1][4].done, seen[1][4].total) == (10, 20)
        seen.clear()
        await across.enqueue()
        await run(app)
        assert seen[0][1:3] == (None, "backfill across goes over all tenants")


# -- asking for a pass ---------------------------------------------------------------------------------
async def test_one_pass_is_live_at_a_time_and_a_completed_one_is_repeated_only_by_force():
    shelf = Shelf(20)
    fill = declared(shelf)
    async with shop(fill) as app:
        first = await fill.enqueue()
        again = await fill.enqueue(force=True)
        assert (again.deduped, again.id) == (True, first.id)
        await run(app)
        (before,) = await passes_of(app, "fill")
        with pytest.raises(BackfillApplied) as caught:
            await fill.enqueue()
        assert "--force" in caught.value.fix
        forced = await fill.enqueue(force=True)
        assert (forced.deduped, forced.id == first.id) == (False, False)
        await run(app)
        newest, oldest = await passes_of(app, "fill")
    assert (newest.run_id, newest.forced, newest.status) == (forced.run_id, True, "completed")
    assert oldest == before
    assert shelf.read == [None, 10, 20, None]


async def test_a_deploy_that_changes_the_tenant_starts_no_second_pass_beside_the_live_one():
    shelf = Shelf(20)
    before, after = declared(shelf, tenant="acme"), declared(shelf, tenant="globex")
    driver = MemoryDriver()
    async with shop(before, driver=driver):
        first = await before.enqueue()
    async with shop(after, driver=driver) as app:
        again = await after.enqueue()
        assert (again.deduped, again.id) == (True, first.id)
        # One that was stored all the same, by two deploys at the same moment, reads no row.
        twin = NewJob(new_id(), "fill", '{"force":false}', idempotency_key="fill", tenant_id="globex", priority=-1)
        await driver.enqueue([twin])
        await run(app)
        assert len(await passes_of(app, "fill")) == 1
    assert shelf.read == [None, 10, 20]


async def test_a_pass_waits_in_its_tenant_s_lane_where_tenants_take_turns():
    fill = declared(Shelf(3), tenant="acme")
    async with shop(fill, limits=Limits(fair=["default"])) as app:
        answer = await fill.enqueue()
        assert (await Inspector(app.driver).job(answer.id)).row.lane == "t:acme"
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"


async def test_a_handle_of_no_application_is_refused():
    fill = declared(Shelf(1))
    async with shop(declared(Shelf(1))) as app:
        with pytest.raises(Invariant, match="no backfill that is registered"):
            await app.enqueue_backfill(fill)


async def test_a_pass_that_finds_another_completed_skips_and_says_when_that_was_of_another_definition(
    caplog: pytest.LogCaptureFixture,
):
    shelf, other = Shelf(10), Shelf(10)
    fill = declared(shelf)
    driver = MemoryDriver()
    async with shop(fill, driver=driver) as app:
        await fill.enqueue()
        await run(app)

    async def otherwise(rows: Rows, ctx: Any) -> None:
        await other.handle(rows, ctx)

    changed = declared(other, otherwise)
    async with shop(changed, driver=driver) as app:
        # As when it was asked for before the other one completed.
        await driver.enqueue([NewJob(new_id(), "fill", '{"force":false}', idempotency_key="fill")])
        with caplog.at_level(logging.INFO, "ultijobs"):
            await run(app)
        assert len(await passes_of(app, "fill")) == 1
        assert (await row_of(app, "fill")).changed
    events = [getattr(record, "event", "") for record in caplog.records]
    assert "jobs.backfill.skipped" in events
    assert "jobs.backfill.definition-changed" in events
    assert other.handled == []


# -- where it may run ----------------------------------------------------------------------------------
async def test_in_another_environment_the_pass_refuses_and_leaves_no_line(monkeypatch: pytest.MonkeyPatch):
    shelf = Shelf(5)
    fill = declared(shelf, environments=["production"])
    async with shop(fill) as app:
        for environment in ("staging", ""):
            monkeypatch.setenv("ULTIJOBS_ENV", environment)
            answer = await fill.enqueue()
            await run(app)
            job = await Inspector(app.driver).job(answer.id)
            assert (job.row.state, job.row.error_code) == ("dead", "X_BACKFILL_ENVIRONMENT")
            assert (await row_of(app, "fill")).state == "excluded"
        assert await passes_of(app, "fill") == []
        monkeypatch.setenv("ULTIJOBS_ENV", "production")
        await fill.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    assert shelf.handled == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("requires", "applied"),
    [
        (
            "shop.0042_fill",
            """create table django_migrations (id bigint, app varchar, name varchar, applied timestamptz);
            insert into django_migrations values (1, 'shop', '0042_fill', now())""",
        ),
        (
            "ae1027a6acf",
            """create table alembic_version (version_num varchar(32) primary key);
            insert into alembic_version values ('ae1027a6acf')""",
        ),
    ],
    ids=["django", "alembic"],
)
async def test_a_pass_waits_for_its_migration_and_leaves_no_line_before(
    pg_url: str, files: asyncpg.Connection[Any], requires: str, applied: str
):
    shelf = Shelf(5)
    fill = declared(shelf, requires=requires, retry=RetryPolicy(attempts=1))
    async with shop(fill, driver=pg_url) as app:
        answer = await fill.enqueue()
        await run(app)
        job = await Inspector(app.driver).job(answer.id)
        assert (job.row.state, job.row.error_code) == ("dead", "X_BACKFILL_MIGRATION_PENDING")
        assert await passes_of(app, "fill") == []
        await files.execute(applied)
        await fill.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"


# -- the count at the end ------------------------------------------------------------------------------
async def test_rows_that_come_behind_the_cursor_are_swept_too():
    shelf = Shelf(20)

    async def late(rows: Rows, ctx: Any) -> None:
        await shelf.handle(rows, ctx)
        if 20 in rows:
            shelf.rows[0] = False

    fill = declared(shelf, late, count=shelf.left)
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows, line.sweep, line.remaining) == ("completed", 21, 1, 0)
    assert shelf.left() == 0


async def test_a_source_to_which_rows_keep_coming_completes_and_says_what_is_left(caplog: pytest.LogCaptureFixture):
    shelf = Shelf(20)

    async def busy(rows: Rows, ctx: Any) -> None:
        await shelf.handle(rows, ctx)
        shelf.rows[min(shelf.rows) - 1] = False

    fill = declared(shelf, busy, count=shelf.left)
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.remaining, line.sweep) == ("completed", 1, 5)
    assert "jobs.backfill.left-behind" in [getattr(record, "event", "") for record in caplog.records]


@pytest.mark.parametrize("source", ["runs dry", "brings the same rows again"])
async def test_a_count_that_the_source_cannot_meet_stops_the_pass_as_stalled(source: str):
    shelf = Shelf(30)
    seen: list[int] = []

    async def keep(rows: Rows, ctx: Any) -> None:
        seen.extend(rows)
        if source == "runs dry":
            await shelf.handle(rows, ctx)

    fill = declared(shelf, keep, count=lambda: 7)
    async with shop(fill) as app:
        answer = await fill.enqueue()
        await run(app)
        job = await Inspector(app.driver).job(answer.id)
        row = await row_of(app, "fill")
    assert (job.row.state, job.row.stop_reason, job.row.attempt) == ("dead", "terminal", 1)
    assert (row.state, row.error_code, row.remaining) == ("failed", "X_BACKFILL_STALLED", Count(7))
    assert "7 rows" in (row.last_error or "")
    assert len(seen) <= 60


@pytest.mark.parametrize("answer", [-1, 1.5, "3", None, True])
async def test_a_count_that_is_no_whole_number_fails_the_pass(answer: Any):
    fill = declared(Shelf(3), count=lambda: answer, retry=RetryPolicy(attempts=1))
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        row = await row_of(app, "fill")
    assert (row.state, row.error_code) == ("failed", "X_INVARIANT")


async def test_an_async_count_and_one_that_fails_at_first_answer_at_the_end():
    asked: list[int] = []
    shelf = Shelf(12)

    async def count() -> int:
        asked.append(shelf.left())
        if len(asked) == 1:
            raise OSError("not now")
        return shelf.left()

    fill = declared(shelf, count=count)
    async with shop(fill) as app:
        await fill.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    assert asked == [12, 0]


# -- ending early --------------------------------------------------------------------------------------
async def test_a_cancel_ends_a_pass_in_the_middle_of_a_wait_and_it_is_not_running(pg_url: str):
    shelf = Shelf(30)
    fill = declared(shelf, rate=0.01)
    async with shop(fill, driver=pg_url) as app:
        worker = Worker(app, grace="1s")
        running = asyncio.create_task(worker.run())
        answer = await fill.enqueue()
        await until(app, "fill", rows=10)
        await app.driver.cancel([answer.id])
        row = await until(app, "fill", state="cancelled")
        assert (row.rows, row.cursor) == (10, "10")

        async def free() -> bool:
            return [w.running for w in await Inspector(app.driver).workers()] == [0]

        await eventually(free)
        assert shelf.read == [None]
        worker.stop()
        await running


async def test_a_pass_that_is_handed_back_goes_on_at_no_cost():
    shelf = Shelf(30)
    fill = declared(shelf, rate=0.01)
    driver = MemoryDriver()
    async with shop(fill, driver=driver) as app:
        worker = Worker(app, grace="0.1s")
        running = asyncio.create_task(worker.run())
        answer = await fill.enqueue()
        await until(app, "fill", rows=10)
        worker.stop()
        await running
        assert (await Inspector(driver).job(answer.id)).row.attempt == 0
    again = declared(shelf)
    async with shop(again, driver=driver) as app:
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows, line.batches) == ("completed", 30, 3)
    assert shelf.read == [None, 10, 20, 30]


@pytest.mark.parametrize("told", ["to stop", "to take no more"])
async def test_a_worker_that_winds_down_hands_a_pass_back_between_two_pages(told: str):
    shelf = Shelf(100_000)
    under_way = asyncio.Event()

    async def slowly(rows: Rows, ctx: Any) -> None:
        under_way.set()
        await asyncio.sleep(0.02)
        await shelf.handle(rows, ctx)

    fill = declared(shelf, slowly)
    async with shop(fill) as app:
        worker = Worker(app, grace="1h", name="w")
        running = asyncio.create_task(worker.run())
        answer = await fill.enqueue()
        await under_way.wait()
        if told == "to stop":
            worker.stop()
        else:
            await app.driver.order_worker("w", WorkerOrder.DRAIN)
        row = await until(app, "fill", job_state="ready")
        assert (row.rows, row.cursor) == (len(shelf.handled), str(len(shelf.handled)))
        job = (await Inspector(app.driver).job(answer.id)).row
        assert (job.attempt, job.last_error) == (0, None)
        worker.stop()
        await running


async def test_a_database_that_is_away_for_a_while_costs_a_pass_nothing(monkeypatch: pytest.MonkeyPatch):
    shelf = Shelf(30)
    fill = declared(shelf, retry=RetryPolicy(attempts=1))
    async with shop(fill) as app:
        store = type(app.driver.backfills)
        mark, failures = store.mark, [DriverUnavailable("away"), DriverUnavailable("away")]

        async def away(self: Any, told: Any) -> bool:
            if told.rows == 20 and failures:
                raise failures.pop()
            return await mark(self, told)

        monkeypatch.setattr(store, "mark", away)
        await fill.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    assert shelf.handled == list(range(1, 31))
    assert not failures
