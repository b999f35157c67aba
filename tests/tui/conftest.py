"""Stored pictures live at the top, in `snapshots/`, each with its text beside it; nothing is ever deleted by a tool."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")  # read when textual is imported
os.environ["PAGER"] = "cat"  # there on every machine

import pytest
import pytest_textual_snapshot as pts
from syrupy.data import SnapshotCollections

from tests.tui import picturing
from tests.tui.fake import FakeSource
from ultijobs_tui.app import Cockpit

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "snapshots"
USED: set[Path] = set()


class TopLevelSVG(pts.SVGImageExtension):
    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        relative = Path(test_location.filepath).resolve().relative_to(ROOT / "tests")
        return str(SNAPSHOTS / relative.with_suffix(""))

    @classmethod
    def get_location(cls, **kw: Any) -> str:
        location = super().get_location(**kw)
        USED.add(Path(location))
        return location

    def discover_snapshots(self, *, test_location: Any) -> SnapshotCollections:
        return SnapshotCollections()


pts.SVGImageExtension = TopLevelSVG


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def picture(snap_compare: Any, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares the cockpit with its stored picture, and the text beside it."""

    def compare(
        app: Cockpit, run_before: Callable[[Any], Awaitable[None]], *, size: tuple[int, int] = picturing.WIDE
    ) -> None:
        same = snap_compare(app, run_before=run_before, terminal_size=size)
        folder = Path(TopLevelSVG.dirname(test_location=_Location(str(request.path))))
        path = folder / f"{request.node.name}.txt"
        USED.add(path)
        stored = picturing.keep_text(app, path, update=bool(request.config.option.update_snapshots))
        if stored is not None:
            assert app.shown == stored
        assert same

    return compare


@dataclass
class _Location:
    filepath: str


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A picture that no test compares fails a run of the whole folder in one process."""
    config = session.config
    asked = {(config.invocation_params.dir / argument).resolve() for argument in config.args}
    whole = bool(asked & {ROOT, ROOT / "tests", ROOT / "tests" / "tui", ROOT / "tests" / "tui" / "snap"})
    chosen = config.option.keyword or config.option.markexpr or hasattr(config, "workerinput")
    if not whole or chosen or session.exitstatus != 0:
        return
    stored = {*SNAPSHOTS.rglob("*.svg"), *SNAPSHOTS.rglob("*.txt")}
    orphans = sorted(str(path.relative_to(ROOT)) for path in stored - USED)
    if orphans:
        print("\npictures without a test:", *orphans, sep="\n  ")  # noqa: T201 - the run's own report
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
