"""Stored pictures live at the top, in `snapshots/`, each with its text beside it; nothing is ever deleted by a tool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")  # read when textual is imported

import pytest
import pytest_textual_snapshot as pts
from syrupy.data import SnapshotCollections

from tests.tui.fake import FakeSource

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
