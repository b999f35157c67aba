"""One PostgreSQL server a session; one fresh, migrated database a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers import Server, start_server


@pytest.fixture(scope="session")
def pg() -> Iterator[Server]:
    server = start_server()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def pg_url(pg: Server) -> Iterator[str]:
    """A database of the test's own, migrated in schema public."""
    url = pg.create()
    yield url
    pg.drop(url)


@pytest.fixture
def empty_pg_url(pg: Server) -> Iterator[str]:
    """A database without any table."""
    url = pg.create(migrated=False)
    yield url
    pg.drop(url)
