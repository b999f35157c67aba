"""One PostgreSQL server a session; one fresh, migrated database a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support.servers import Server, start_server

# A shell that starts a run in the background has it ignore ctrl-c, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
