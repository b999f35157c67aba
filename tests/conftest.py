"""One PostgreSQL server a session; one fresh, migrated database a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.support import whole_runs
from tests.support.servers import Server, on_system_server, start_server

# What a terminal, a CI or a developer's shell has set is not what is tested; read when rich and textual are imported.
for name in [*os.environ]:
    ours = name.startswith("ULTIJOBS_") and not name.startswith("ULTIJOBS_TEST_")
    if ours or name.startswith("PG") or name in {"DATABASE_URL", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}:
        del os.environ[name]
os.environ |= {"TERM": "xterm-256color", "XDG_CONFIG_HOME": "/nonexistent"}

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole_runs.note_whole_folders(config, items)
    if on_system_server():
        idle = [item for item in items if not needs_server(item)]
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if item not in idle]


def needs_server(item: pytest.Item) -> bool:
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "pg" in getattr(item, "fixturenames", ()) or "postgres" in parameters


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    whole_runs.take_in(node)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run of a whole folder that left something out which it exists for."""
    if whole_runs.hand_in(session.config) or session.exitstatus != 0:
        return
    if lines := list(whole_runs.left_out(session.config)):
        print("\n", *lines, sep="\n")  # noqa: T201 - the run's own report
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """What hostile texts left in a log reaches the controller of xdist as escapes: it breaks off over a surrogate."""
    report = yield
    return None if report is None else _encodable(report)


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_encodable(each) for each in value)
        case _:
            return value
