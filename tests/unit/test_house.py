"""Rules of the house that no linter knows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(p for top in ("ultijobs", "cli", "tui") for p in (ROOT / top).rglob("*.py"))
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError")


def test_no_module_grows_beyond_four_hundred_lines() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in SOURCES}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_each_module_says_what_it_alone_is_responsible_for() -> None:
    silent = [str(p.relative_to(ROOT)) for p in SOURCES if not p.read_text().lstrip().startswith(('"""', "#!"))]
    assert silent == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{p.relative_to(ROOT)}:{number}"
        for p in SOURCES
        for number, line in enumerate(p.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []
