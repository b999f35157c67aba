"""Two databases filled alike, one of them without statistics: what the plans of hot statements are bounded on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import asyncpg

from tests.support.servers import Server, blocking

__all__ = ["SETTINGS", "large_databases"]

SETTINGS = {
    "generic": {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"},
    "custom": {"plan_cache_mode": "force_custom_plan"},
    "auto": {},
}


@contextmanager
def large_databases(
    pg: Server, tables: Sequence[str], *fill: str, afterwards: str | None = None
) -> Iterator[dict[str, str]]:
    """Their URLs, by state. `tables` are kept from autovacuum; `afterwards` runs when statistics are gathered."""
    urls = {"analysed": pg.create(), "never analysed": pg.create()}
    for state, url in urls.items():
        statements = [f"alter table {table} set (autovacuum_enabled = off)" for table in tables]
        statements += [
            *fill,
            *(["vacuum analyze"] if state == "analysed" else []),
            *([afterwards] if afterwards else []),
        ]
        blocking(_run(url, statements))
    yield urls
    for url in urls.values():
        pg.drop(url)


async def _run(url: str, statements: Sequence[str]) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()
