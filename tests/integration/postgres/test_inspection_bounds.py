"""Inspection costs what it shows and what is live, never what history or a backlog holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.reading import ExplainingLinks, explaining
from tests.support.servers import Server, blocking
from ultijobs._queue.views import Count, Sort, by_name
from ultijobs._queue.where import ANY
from ultijobs.inspection import StuckKind
from ultijobs.inspection.filter import parse_where
from ultijobs.inspection.overview import overview
from ultijobs.postgres.enqueue import Enqueuer
from ultijobs.postgres.inspection import PostgresInspection
from ultijobs.postgres.schedule import PostgresSchedule
from ultijobs.postgres.sql import Sql

READY, LATER, RUNNING, DEAD, DONE, CANCELLED = 40_000, 15_000, 200, 25_000, 60_000, 300
SUSPENDED = 55
LIVE = READY + LATER + RUNNING + DEAD + SUSPENDED
PAGE = 200
SCAN = 10_000
Read = Callable[[PostgresInspection], Awaitable[Any]]

# Ids are in the order of their groups, so that the dead hide what waits, and history hides both.
SEED = f"""
create function pg_temp.nth(n bigint) returns uuid language sql as $$
  select (lpad(to_hex(1700000000000 + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid $$;
insert into x_jobs (id, run_id, name, queue, tenant_id, run_at, due_at, created_at, updated_at, idempotency_key, input)
  select u, u, 'charge_' || i % 7, case when i % 20 = 0 then 'mail' else 'billing' end, 't' || i % 50, t, t, t, t,
         'k' || i, '{{"customer": {{"id": 42}}}}'
    from generate_series(1, {READY}) i, pg_temp.nth(i) u, (select now() - interval '1 hour' as t) x;
insert into x_jobs (id, run_id, name, queue, run_at, idempotency_key)
  select u, u, 'later', 'billing', now() + interval '1 hour', 'l' || i
    from generate_series(1, {LATER}) i, pg_temp.nth(100000 + i) u;
insert into x_jobs (id, run_id, name, queue, state, run_at, idempotency_key)
  select u, u, 'charge_1', 'billing', 'suspended', now() + (i - 5) * interval '1 hour', 's' || i
    from generate_series(1, {SUSPENDED}) i, pg_temp.nth(150000 + i) u;
insert into x_jobs (id, run_id, name, queue, state, lease_until, lease_no, worker_id, started_at, idempotency_key)
  select u, u, 'charge_1', 'mail', 'running', now() + interval '1 minute', i, 'w-1', now(), 'r' || i
    from generate_series(1, {RUNNING}) i, pg_temp.nth(200000 + i) u;
insert into x_jobs (id, run_id, name, queue, state, finished_at, stop_reason, error_code, fingerprint, last_error,
                    idempotency_key, attempt, claims)
  select u, u, 'charge_' || i % 3, 'billing', 'dead', now() - i * interval '1 s', 'attempts-exhausted', 'X_B',
         'f' || i % 14, 'timed out ' || i, 'd' || i, 3, 3
    from generate_series(1, {DEAD}) i, pg_temp.nth(300000 + i) u;
insert into x_jobs_done (id, run_id, name, queue, tenant_id, state, finished_at, idempotency_key)
  select u, u, 'charge_' || i % 7, 'billing', 't' || i % 50,
         case when i <= {CANCELLED} then 'cancelled' else 'done' end, now(), 'x' || i
    from generate_series(1, {DONE + CANCELLED}) i, pg_temp.nth(400000 + i) u;
"""


# Something for each detector, so that none is spared its statement.
LATE = """
insert into x_scheduler_state (task, cron, tz, watermark)
  values ('nightly', '*/5 * * * *', 'UTC', now() - interval '1 h')
  on conflict do nothing;
insert into x_workers
    (instance, state, free_slots, running, worker_id, host, pid, version, queues, names, concurrency, limited)
  values (gen_random_uuid(), 'running', 1, 0, 'w-2', 'h', 1, '1', '{mail}', '{charge_1}', 4, '{"t20": 5000}');
update x_jobs set lease_until = now() - interval '1 min'
 where id = (select id from x_jobs where state = 'running' limit 1);
"""


@pytest.fixture(scope="module")
def large(pg: Server) -> Iterator[str]:
    url = pg.create()

    async def fill() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(SEED)
            await connection.execute("vacuum analyze")
        finally:
            await connection.close()

    blocking(fill())
    yield url
    pg.drop(url)


@pytest.fixture
async def reading(large: str) -> AsyncIterator[tuple[PostgresInspection, ExplainingLinks]]:
    store, links, connection = await explaining(large)
    yield store, links
    await connection.close()


def page(text: str, sort: Sort = Sort.NEWEST) -> Read:
    return lambda store: store.jobs(parse_where(text), sort=sort, limit=PAGE)


@pytest.mark.parametrize("sort", list(Sort))
async def test_a_page_of_everything_reads_a_page_of_each_source(reading: Any, sort: Sort) -> None:
    store, links = reading
    assert len((await store.jobs(ANY, sort=sort, limit=PAGE)).rows) == PAGE
    assert links.rows <= 6 * PAGE
    assert len(links.statements) == 1


@pytest.mark.parametrize("text", ["state:done", "state:cancelled", "state:dead", "fp:f3", "reason:attempts-exhausted"])
async def test_a_page_that_an_index_serves_reads_about_a_page(reading: Any, text: str) -> None:
    store, links = reading
    assert len((await page(text)(store)).rows) == PAGE
    assert links.rows <= 20 * PAGE


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("queue:nope", 0),
        ("tenant:t7", PAGE),
        ("job:later", PAGE),
        ("key:k777", 1),
        ("worker:w-1", RUNNING),
        ("code:X_B", PAGE),
        ("age:>30m", PAGE),
        ("-state:done", PAGE),
    ],
)
async def test_live_rows_are_found_at_once_whatever_history_hides_them(reading: Any, text: str, hits: int) -> None:
    store, links = reading
    assert len((await page(text)(store)).rows) == hits
    assert links.rows <= LIVE + SCAN + 4 * PAGE


@pytest.mark.parametrize(
    "text", ["state:dead err~nowhere", "queue:billing input.customer.id:43", "queue:mail step:charge"]
)
async def test_a_word_that_scans_looks_at_so_many_rows_and_the_next_page_goes_on(reading: Any, text: str) -> None:
    store, links = reading
    found = await page(text)(store)
    assert found.rows == []
    assert found.next is not None
    # The rows of another queue or state are passed over on the way to those that are looked at.
    assert links.rows <= LIVE + SCAN
    again = await store.jobs(parse_where(text), limit=PAGE, after=found.next)
    assert again.next != found.next


async def test_pages_of_a_filter_that_is_cut_neither_skip_nor_repeat(reading: Any) -> None:
    store, _ = reading
    where = parse_where("tenant:t7 -state:done")
    seen: list[Any] = []
    after: str | None = None
    while True:
        found = await store.jobs(where, limit=137, after=after)
        seen += [row.id for row in found.rows]
        after = found.next
        if after is None:
            break
    assert len(seen) == len(set(seen)) == READY // 50 + CANCELLED // 50


async def test_counts_stop_at_their_caps(reading: Any) -> None:
    store, links = reading
    seen = await store.stats()
    by_name = {queue.queue: queue for queue in seen.queues}
    assert str(by_name["billing"].ready) == "10,000+"
    assert str(by_name["mail"].ready) == f"{READY // 20:,}"
    assert str(by_name["billing"].delayed) == "10,000+"
    assert str(by_name["billing"].dead) == str(seen.totals["dead"]) == "10,000+"
    assert str(by_name["mail"].dead) == str(seen.totals["failed"]) == "?"
    assert by_name["billing"].suspended == Count(SUSPENDED)
    assert by_name["mail"].running == RUNNING
    assert seen.totals["done"].kind == "estimate"
    assert abs(seen.totals["done"].value - DONE) < DONE // 10
    assert seen.totals["cancelled"].value == CANCELLED
    assert links.rows <= 10_001 * 2 + READY // 20 + 10_001 + 10_001 + RUNNING + CANCELLED + 2 * SUSPENDED + 100


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("state:ready", 10_100),
        ("state:dead", 10_100),
        ("", 20_002),
        ("tenant:nope", LIVE + SCAN),
    ],
)
async def test_a_count_reads_no_more_than_its_cap(reading: Any, text: str, most: int) -> None:
    store, links = reading
    await store.count(parse_where(text))
    assert links.rows <= most


async def test_causes_are_read_from_the_newest_stopped_rows(reading: Any) -> None:
    store, links = reading
    found = await store.causes(parse_where("state:dead,failed"))
    assert len(found) == 14
    assert sum(cause.count.value for cause in found) == SCAN
    assert {cause.count.kind for cause in found} == {"capped"}
    assert links.rows <= SCAN + 14 * 10


async def test_names_that_wait_are_read_from_the_heads_of_their_streams(reading: Any) -> None:
    store, links = reading
    found = await store.due(queues=["billing", "mail"], without=["charge_1"])
    assert sorted(by_name(found)) == [f"charge_{n}" for n in (0, 2, 3, 4, 5, 6)]
    assert links.rows <= 2 * 2_000 + 10


@pytest.mark.parametrize("text", ["state:dead", "fp:f3", "state:cancelled", "state:done", "state:ready queue:billing"])
async def test_targets_are_read_by_the_batch(reading: Any, text: str) -> None:
    store, links = reading
    found = await store.targets(parse_where(text), as_of=datetime.now(UTC) + timedelta(minutes=1), limit=500)
    assert len(found) == (CANCELLED if text == "state:cancelled" else 500)
    assert links.rows <= READY + LATER + DEAD + 1_000


async def test_a_refresh_of_the_incident_screen_is_six_statements_at_most(reading: Any, large: str) -> None:
    store, links = reading
    sql = Sql("public")
    connection = await asyncpg.connect(large)
    await connection.execute(LATE)
    await connection.close()
    found = await overview(store, PostgresSchedule(links, links, links, sql, Enqueuer(links, sql)))
    kinds = {line.kind for line in found.stuck}
    assert kinds >= {StuckKind.DEAD, StuckKind.LEASE, StuckKind.NO_WORKER, StuckKind.CRON, StuckKind.THROTTLED}
    assert len(links.statements) <= 6
    assert links.rows <= 80_000
