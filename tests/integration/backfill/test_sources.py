"""Sources over SQL: every row once, in the order of its key, whatever the key is and whatever the table is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import Column, Engine, MetaData, create_engine, desc, insert, select
from sqlalchemy import Table as SqlTable
from sqlalchemy import types as sql
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.integration.backfill.conftest import passes_of, row_of, run, until
from ultijobs import App, BatchSource, RetryPolicy, Worker, backfill
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._queue.views import Count
from ultijobs.inspection import Action, Inspector
from ultijobs.memory import MemoryDriver

FAST = 10_000.0
Rows = Sequence[Any]


class Seen:
    """A backfill that keeps what it was given, page by page."""

    def __init__(self, source: BatchSource[Any], *, fails_at: int | None = None, **options: Any) -> None:
        self.pages: list[list[Any]] = []
        self.fails_at = fails_at

        async def fill(rows: Rows, ctx: Any) -> None:
            if self.fails_at == len(self.pages):
                self.fails_at = None
                raise OSError("cut off")
            self.pages.append(list(rows))

        given: dict[str, Any] = {
            "tenant": "none",
            "rate": FAST,
            "batch": 100,
            "retry": RetryPolicy(attempts=2, delay=0, jitter=False),
            **options,
        }
        self.handle: BackfillHandle[Any] = backfill(source, **given)(fill)

    @property
    def rows(self) -> list[Any]:
        return [row for page in self.pages for row in page]

    async def swept(self, url: str) -> App[None]:
        """Runs one pass to its end; the application is closed when this returns."""
        async with App(jobs=[self.handle], driver=url) as app:
            await self.handle.enqueue()
            await run(app)
            (line,) = await passes_of(app, "fill")
            assert (line.status, line.rows) == ("completed", len(self.rows)), line
        return app


# -- tables --------------------------------------------------------------------------------------------
async def test_rows_of_a_table_come_as_dicts_by_its_key(pg_url: str, files: asyncpg.Connection[Any]):
    seen = Seen(BatchSource.table("files", key="id", where="id > 5 -- not the first"))
    await seen.swept(pg_url)
    assert [len(page) for page in seen.pages] == [100, 100, 45]
    assert seen.rows[0] == {"id": 6, "path": "/f/6", "done": False}
    assert [row["id"] for row in seen.rows] == list(range(6, 251))


async def test_a_resumed_pass_over_a_table_reads_no_earlier_page(pg_url: str, files: asyncpg.Connection[Any]):
    seen = Seen(BatchSource.table("files", key="id"), fails_at=2)
    await seen.swept(pg_url)
    assert [page[0]["id"] for page in seen.pages] == [1, 101, 201]


class Marking:
    """Marks its rows as done, so that none comes twice; the process ends within the second page, the first time."""

    def __init__(self, files: asyncpg.Connection[Any], handled: int) -> None:
        self.pages: list[list[int]] = []
        self.files = files
        self.handled = handled

    def over(self, source: BatchSource[Any], *, batch: int = 100, attempts: int = 2) -> BackfillHandle[Any]:
        async def fill(rows: Rows, ctx: Any) -> None:
            keys = [row["id"] if isinstance(row, dict) else row.id for row in rows]
            self.pages.append(keys)
            dies = len(self.pages) == 2
            await self.files.execute(
                "update files set done = true where id = any($1::bigint[])", keys[: self.handled] if dies else keys
            )
            if dies:
                raise OSError("cut off")

        retry = RetryPolicy(attempts=attempts, delay=0, jitter=False)
        return backfill(source, tenant="none", rate=FAST, batch=batch, retry=retry)(fill)


FILES = SqlTable("files", MetaData(), Column("id", sql.BigInteger), Column("done", sql.Boolean))


@pytest.mark.parametrize("handled", [0, 60, 100], ids=["none", "some", "all"])
@pytest.mark.parametrize("kind", ["table", "select", "sync select"])
async def test_a_page_that_was_cut_off_counts_whole_whatever_of_it_comes_again(
    pg_url: str, files: asyncpg.Connection[Any], kind: str, handled: int
):
    engine: Any = None
    if kind == "table":
        source: BatchSource[Any] = BatchSource.table("files", key="id", where="not done")
    else:
        dsn = pg_url.replace("postgresql", "postgresql+psycopg" if kind == "sync select" else "postgresql+asyncpg")
        engine = create_engine(dsn) if kind == "sync select" else create_async_engine(dsn)
        statement = select(FILES).where(~FILES.c.done).order_by(FILES.c.id)
        source = BatchSource.select(statement, engine=engine)
    marking = Marking(files, handled)
    fill = marking.over(source)
    async with App(jobs=[fill], driver=pg_url) as app:
        await fill.enqueue()
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows, line.batches, line.in_hand) == ("completed", 250, 3, 0)
    rest = [list(range(101 + handled, 201))] if handled < 100 else []
    assert marking.pages[2:] == [*rest, list(range(201, 251))]
    if engine is not None:
        await (engine.dispose() if kind == "select" else asyncio.to_thread(engine.dispose))


async def test_a_page_that_was_cut_off_counts_whole_in_smaller_pages_too(pg_url: str, files: asyncpg.Connection[Any]):
    marking = Marking(files, handled=30)
    source = BatchSource.table("files", key="id", where="not done")
    before, after = marking.over(source, attempts=1), marking.over(source, batch=40)
    async with App(jobs=[before], driver=pg_url) as app:
        answer = await before.enqueue()
        await run(app)
        (cut,) = await passes_of(app, "fill")
    assert (cut.status, cut.rows, cut.in_hand, cut.in_hand_to) == ("failed", 100, 100, '{"id":"200"}')
    async with App(jobs=[after], driver=pg_url) as app:
        api = Inspector(app.driver)
        await api.apply(await api.plan(Action.RETRY, [answer.id]))
        await run(app)
        (line,) = await passes_of(app, "fill")
    assert (line.status, line.rows) == ("completed", 250)
    assert [len(page) for page in marking.pages] == [100, 100, 40, 30, 40, 10]


KEYS = {
    "uuid": "md5(i::text)::uuid",
    'text collate "C"': "'k' || i || E'\\'\"'",
    "varchar(20)": "lpad(i::text, 5, '0')",
    "numeric": "i / 7.0",
    "double precision": "i / 7.0::float8",
    "timestamptz": "'2026-01-01T00:00:00.123456+05:30'::timestamptz + i * interval '1 us'",
    "date": "date '2026-01-01' + i",
    "bytea": "decode(lpad(to_hex(i), 4, '0'), 'hex')",
    "inet": "'10.0.0.0'::inet + i",
}


@pytest.mark.parametrize("kind", KEYS)
async def test_a_key_of_any_type_with_an_order_is_one(pg_url: str, files: asyncpg.Connection[Any], kind: str):
    await files.execute(f"create table things (k {kind} primary key, n int)")
    await files.execute(f"insert into things select {KEYS[kind]}, i from generate_series(1, 250) i")
    seen = Seen(BatchSource.table("things", key="k"), fails_at=1)
    await seen.swept(pg_url)
    assert [row["n"] for row in seen.rows] == [row["n"] for row in await files.fetch("select n from things order by k")]


async def test_a_key_of_several_columns_and_names_that_need_quotes(pg_url: str, files: asyncpg.Connection[Any]):
    await files.execute(
        'create schema "My App"; create table "My App"."Line ""items"" x" ("Order" int, "no.; drop table files" text);'
        'insert into "My App"."Line ""items"" x" select i % 7, i::text from generate_series(1, 250) i;'
    )
    table = '"My App"."Line ""items"" x"'
    seen = Seen(BatchSource.table(table, key="Order, no.; drop table files"), fails_at=1)
    await seen.swept(pg_url)
    assert len({tuple(row.items()) for row in seen.rows}) == len(seen.rows) == 250
    assert await files.fetchval("select count(*) from files") == 250


async def test_rows_without_a_key_are_left_out(pg_url: str, files: asyncpg.Connection[Any]):
    await files.execute("create table loose (k int unique); insert into loose values (null), (1), (null), (2)")
    seen = Seen(BatchSource.table("public.loose", key="k"), batch=1)
    await seen.swept(pg_url)
    assert seen.rows == [{"k": 1}, {"k": 2}]


async def test_a_table_of_another_database(pg_url: str, files: asyncpg.Connection[Any]):
    seen = Seen(BatchSource.table("files", key="id", dsn=pg_url))
    async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
        await seen.handle.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    assert len(seen.rows) == 250


async def test_the_table_of_an_application_whose_queue_lives_elsewhere_is_where_its_outbox_is(
    pg_url: str, files: asyncpg.Connection[Any]
):
    seen = Seen(BatchSource.table("files", key="id"))
    async with App(jobs=[seen.handle], driver=MemoryDriver(), outbox=pg_url) as app:
        await seen.handle.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    assert len(seen.rows) == 250


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (BatchSource.table("nowhere", key="id"), "there is no table nowhere"),
        (BatchSource.table("files", key="ID"), "the table files has no column 'ID'"),
    ],
)
async def test_a_table_or_a_key_that_is_not_there_stops_the_pass(
    pg_url: str, files: asyncpg.Connection[Any], source: BatchSource[Any], said: str
):
    seen = Seen(source)
    async with App(jobs=[seen.handle], driver=pg_url) as app:
        await seen.handle.enqueue()
        await run(app)
        row = await row_of(app, "fill")
    assert (row.state, row.error_code) == ("failed", "X_INVARIANT")
    assert said in (row.last_error or "")


async def test_a_source_without_a_database_says_so():
    seen = Seen(BatchSource.table("files", key="id"))
    async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
        await seen.handle.enqueue()
        await run(app)
        assert "lies in no SQL database" in ((await row_of(app, "fill")).last_error or "")


async def test_no_transaction_is_open_while_a_page_is_handled_or_waited_for(
    pg_url: str, files: asyncpg.Connection[Any]
):
    handling, go_on = asyncio.Event(), asyncio.Event()

    @backfill(BatchSource.table("files", key="id"), tenant="none", batch=100, rate=0.01)
    async def fill(rows: Rows, ctx: Any) -> None:
        handling.set()
        await go_on.wait()

    async def open_ones() -> int:
        statement = "select count(*) from pg_stat_activity where state like 'idle in%' and datname = current_database()"
        return int(await files.fetchval(statement))

    async with App(jobs=[fill], driver=pg_url) as app:
        worker = Worker(app, grace="0.1s")
        running = asyncio.create_task(worker.run())
        await fill.enqueue()
        await handling.wait()
        assert await open_ones() == 0
        go_on.set()
        await until(app, "fill", rows=100)
        assert await open_ones() == 0
        worker.stop()
        await running


async def test_the_rows_of_a_guarded_table_are_those_of_the_pass_s_tenant(pg_url: str, files: asyncpg.Connection[Any]):
    await files.execute("""
        alter table files add tenant_id text not null default 'acme';
        update files set tenant_id = 'globex' where id > 200;
        create role shop_reader login; grant select on files to shop_reader;
        alter table files enable row level security;
        create policy own_tenant on files to shop_reader using (
            tenant_id = current_setting('ultijobs.tenant', true)
            or current_setting('ultijobs.cross_tenant', true) <> '');
    """)
    try:
        guarded = pg_url.replace("postgres@", "shop_reader@")
        for tenant, count in (("acme", 200), ("globex", 50), ("none", 250)):
            seen = Seen(BatchSource.table("files", key="id", dsn=guarded), tenant=tenant)
            async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
                await seen.handle.enqueue()
                await run(app)
            assert len(seen.rows) == count
    finally:
        await files.execute("drop table files; drop role shop_reader")


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    region: Mapped[str]


# -- selects -------------------------------------------------------------------------------------------
METADATA = MetaData()
FILES = SqlTable(
    "files",
    METADATA,
    Column("id", sql.BigInteger, primary_key=True),
    Column("path", sql.Text),
    Column("done", sql.Boolean),
)


@pytest.fixture(params=["asyncpg", "psycopg"])
async def engine(request: pytest.FixtureRequest, pg_url: str, files: asyncpg.Connection[Any]) -> AsyncIterator[Any]:
    url = pg_url.replace("postgresql:", f"postgresql+{request.param}:")
    made = create_async_engine(url) if request.param == "asyncpg" else create_engine(url)
    yield made
    if isinstance(made, Engine):
        made.dispose()
    else:
        await made.dispose()


async def test_a_select_is_paged_by_its_order_on_either_kind_of_engine(pg_url: str, engine: Any):
    statement = select(FILES.c.id, FILES.c.path).where(FILES.c.id % 2 == 0).order_by(FILES.c.id.desc())
    seen = Seen(BatchSource.select(statement, engine=engine), batch=50, fails_at=1)
    await seen.swept(pg_url)
    assert [len(page) for page in seen.pages] == [50, 50, 25]
    assert [row.id for row in seen.rows] == list(range(250, 0, -2))
    assert seen.rows[0].path == "/f/250"


async def test_a_select_may_be_ordered_by_several_columns_in_different_directions(pg_url: str, engine: Any):
    kind = (FILES.c.id % 3).label("kind")
    statement = select(kind, FILES.c.id).order_by(kind.desc(), FILES.c.id)
    seen = Seen(BatchSource.select(statement, engine=engine), batch=40)
    await seen.swept(pg_url)
    assert [row.id for row in seen.rows] == sorted(range(1, 251), key=lambda i: (-(i % 3), i))


async def test_a_select_may_be_ordered_by_names_and_by_attributes_of_a_mapped_class(tmp_path: Any):
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(Order), [{"id": i, "region": f"r{i % 3}"} for i in range(1, 26)])
    by_attribute = select(Order).order_by(Order.region.desc(), Order.id)
    by_name = select(Order.id, Order.region.label("place")).order_by(desc("place"), "id")
    for statement in (by_attribute, by_name):
        seen = Seen(BatchSource.select(statement, engine=engine), batch=4, fails_at=2)
        async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
            await seen.handle.enqueue()
            await run(app)
            assert (await row_of(app, "fill")).state == "completed"
        assert [row.id for row in seen.rows] == sorted(range(1, 26), key=lambda i: (-(i % 3), i))
    engine.dispose()


async def test_keys_of_a_select_survive_as_json(tmp_path: Any):
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    things = SqlTable(
        "things",
        MetaData(),
        Column("k", sql.Uuid, primary_key=True),
        Column("at", sql.DateTime),
        Column("day", sql.Date),
        Column("price", sql.Numeric(10, 2)),
    )
    things.metadata.create_all(engine)
    day, price = date(2026, 1, 1), Decimal("1.5")
    rows = [{"k": UUID(int=i), "at": datetime(2026, 1, 1, i % 4), "day": day, "price": price} for i in range(20)]  # noqa: DTZ001
    with engine.begin() as connection:
        connection.execute(things.insert(), rows)
    statement = select(things).order_by(things.c.at, things.c.day, things.c.price, things.c.k)
    seen = Seen(BatchSource.select(statement, engine=engine), batch=3, fails_at=2)
    async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
        await seen.handle.enqueue()
        await run(app)
        assert (await row_of(app, "fill")).state == "completed"
    engine.dispose()
    assert [row.k.int for row in seen.rows] == sorted(range(20), key=lambda i: (i % 4, i))


async def test_a_select_whose_key_cannot_be_told_is_refused(pg_url: str, engine: Any):
    ordered_elsewhere = select(FILES.c.path).order_by(FILES.c.id)
    nulls_first = select(FILES.c.id).order_by(FILES.c.id.nulls_first())
    for statement in (ordered_elsewhere, nulls_first):
        seen = Seen(BatchSource.select(statement, engine=engine))
        async with App(jobs=[seen.handle], driver=MemoryDriver()) as app:
            await seen.handle.enqueue()
            await run(app)
            assert (await row_of(app, "fill")).error_code == "X_INVARIANT"


async def test_a_live_table_is_swept_to_its_end_while_rows_keep_coming(pg_url: str, files: asyncpg.Connection[Any]):
    pages = 0

    async def left() -> int:
        return int(await files.fetchval("select count(*) from files where not done"))

    @backfill(BatchSource.table("files", key="id", where="not done"), tenant="none", batch=50, rate=FAST, count=left)
    async def fill(rows: Rows, ctx: Any) -> None:
        nonlocal pages
        pages += 1
        await files.execute("update files set done = true where id = any($1::bigint[])", [row["id"] for row in rows])
        # One behind the cursor and one before it, with every page.
        await files.execute("insert into files values ($1, 'behind'), ($2, 'before')", -pages, 1_000 + pages)

    async with App(jobs=[fill], driver=pg_url) as app:
        await fill.enqueue()
        await run(app)
        row = await row_of(app, "fill")
    assert (row.state, row.sweep, row.remaining) == ("completed", 5, Count(await left()))
    assert await files.fetchval("select count(*) from files where not done and id between 1 and 1000") == 0
