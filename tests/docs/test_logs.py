"""docs/logs.md names every event that is logged, with its level, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "ultijobs", ROOT / "cli")
EVENT = re.compile(r'"(jobs\.[a-z-]+\.[a-z-]+)"')
ROW = re.compile(r"^\| `(jobs\.[a-z.-]+)` \| ([a-z, ]+) \| (.+?) \|", re.MULTILINE)


def test_the_page_and_the_code_name_the_same_events() -> None:
    told = {
        event
        for source in SOURCES
        for path in source.rglob("*.py")
        for event in EVENT.findall(path.read_text(encoding="utf-8"))
    }
    rows = ROW.findall((ROOT / "docs" / "logs.md").read_text(encoding="utf-8"))
    assert {event for event, _, _ in rows} == told
    assert len({event for event, _, _ in rows}) == len(rows)
    assert {level for _, levels, _ in rows for level in levels.split(", ")} <= {
        "debug",
        "info",
        "warning",
        "error",
        "critical",
    }
