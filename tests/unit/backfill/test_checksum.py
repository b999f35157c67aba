"""What changes the checksum of a backfill, and what does not."""

from __future__ import annotations

from typing import Any

from sqlalchemy import column, select, table

from ultijobs import BatchSource, backfill
from ultijobs._definitions.checksum import checksum

FILES = BatchSource.table("files", key="id")


def declared(source: BatchSource[Any] = FILES, **options: Any) -> str:
    @backfill(source, **{"tenant": "none", **options})
    async def fill(rows: Any, ctx: Any) -> None:
        """Does nothing."""

    return fill.checksum


def test_it_is_32_hex_digits_and_the_same_each_time():
    assert declared() == declared()
    assert len(declared()) == 32
    assert int(declared(), 16)


def test_how_fast_where_and_for_whom_a_pass_runs_is_no_part_of_it():
    plain = declared()
    assert declared(batch=5, rate=1, queue="other", environments=["x"], requires="a1", count=lambda: 0) == plain
    assert declared(BatchSource.table("files", key="id", dsn="postgresql://u:secret@h/d")) == plain


def test_other_rows_are_another_definition():
    sums = {
        declared(),
        declared(BatchSource.table("files", key="path")),
        declared(BatchSource.table("files", key="id", where="not done")),
        declared(BatchSource.select(select(column("id")).select_from(table("f")).order_by("id"), engine=object())),
    }
    assert len(sums) == 4


def test_another_body_is_another_definition():
    @backfill(FILES, tenant="none")
    async def fill(rows: Any, ctx: Any) -> None:
        """Does nothing else."""

    assert fill.checksum != declared()


def test_pages_count_by_their_source():
    async def one(cursor: Any) -> tuple[list[int], None]:
        return [1], None

    async def two(cursor: Any) -> tuple[list[int], None]:
        return [2], None

    assert declared(BatchSource.pages(one)) != declared(BatchSource.pages(two))


def test_code_without_source_counts_by_what_it_was_compiled_to():
    scope: dict[str, Any] = {}
    exec("async def one(rows, ctx): return 1\nasync def two(rows, ctx): return 2", scope)
    assert checksum("x", scope["one"]) != checksum("x", scope["two"])
    assert checksum("x", scope["one"]) == checksum("x", scope["one"])
