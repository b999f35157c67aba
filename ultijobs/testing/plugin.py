"""The pytest plugin: `jobs_app`, the application of `[tool.ultijobs]` on a queue in memory, and what failed in it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from ultijobs import App
    from ultijobs.testing import JobsTestApp

_SEEN: pytest.StashKey[JobsTestApp[Any]] = pytest.StashKey()


@pytest.fixture
def ultijobs_app(pytestconfig: pytest.Config) -> App[Any]:
    """The application under test, by `[tool.ultijobs] app` or `ULTIJOBS_APP`. Override it to say which."""
    from ultijobs import App, _settings  # noqa: PLC0415 - a test run that uses no fixture of ours loads nothing of it

    named = _settings.load(directory=pytestconfig.rootpath).app
    if named is None:
        pytest.fail(
            'jobs_app: no application is named\nfix: set app = "module:name" in [tool.ultijobs], or override the '
            "fixture ultijobs_app",
            pytrace=False,
        )
    if str(pytestconfig.rootpath) not in sys.path:
        sys.path.insert(0, str(pytestconfig.rootpath))
    module, _, attribute = named.partition(":")
    found: object = getattr(importlib.import_module(module), attribute or "app", None)
    if not isinstance(found, App):
        pytest.fail(f"jobs_app: {named} is no ultijobs.App", pytrace=False)
    return found  # pyright: ignore[reportUnknownVariableType] - of whatever services


@pytest.fixture
def jobs_app(ultijobs_app: App[Any], request: pytest.FixtureRequest) -> Generator[JobsTestApp[Any]]:
    """The application under test on a queue in memory, for sync and async tests alike."""
    from ultijobs.testing import JobsTestApp  # noqa: PLC0415 - as above

    with JobsTestApp(ultijobs_app) as jobs:
        cast("pytest.Item", request.node).stash[_SEEN] = jobs  # pyright: ignore[reportUnknownMemberType] - not typed
        yield jobs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the attempts that had ended below a test that failed."""
    report = yield
    jobs = item.stash.get(_SEEN, None)
    if report.when == "call" and report.failed and jobs is not None and jobs.executions:
        report.sections.append(("ultijobs executions", "\n".join(str(each) for each in jobs.executions)))
    return report
