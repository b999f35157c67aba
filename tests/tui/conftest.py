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

from tests.support import whole_runs
from tests.tui import picturing
from tests.tui.fake import FakeSource
from ultijobs_tui.app import Cockpit


class TopLevelSVG(pts.SVGImageExtension):
    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        relative = Path(test_location.filepath).resolve().relative_to(whole_runs.TESTS)
        return str(whole_runs.SNAPSHOTS / relative.with_suffix(""))

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
        whole_runs.note(request.config, whole_runs.PICTURES).update({str(path), str(path.with_suffix(".svg"))})
        stored = picturing.keep_text(app, path, update=bool(request.config.option.update_snapshots))
        if stored is not None:
            assert app.shown == stored
        assert same

    return compare


@dataclass
class _Location:
    filepath: str
