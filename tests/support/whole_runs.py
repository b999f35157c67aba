"""What the processes of one run noted, brought together, and what a run of a whole folder must have seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.recording import contract_methods

TESTS = Path(__file__).parents[1]
SNAPSHOTS = TESTS.parent / "snapshots"
FOLDERS = ("contract", "tui/snap")
WHOLE, PICTURES, CALLS = "whole", "pictures", "calls."
_NOTES = pytest.StashKey[defaultdict[str, set[str]]]()


def note(config: pytest.Config, subject: str) -> set[str]:
    """The set of what this process has seen of `subject`; with xdist it reaches the process that judges."""
    return config.stash.setdefault(_NOTES, defaultdict(set))[subject]


def note_whole_folders(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Notes which folders are run without any of their cases left out."""
    if any(config.getoption(name) for name in ("keyword", "markexpr", "collectonly")):
        return
    chosen = {item.path for item in items}
    note(config, WHOLE).update(name for name in FOLDERS if set((TESTS / name).glob("test_*.py")) <= chosen)


def hand_in(config: pytest.Config) -> bool:
    """In a worker of xdist: gives its notes to the controller, and is True."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output["notes"] = {subject: sorted(seen) for subject, seen in config.stash[_NOTES].items()}
    return output is not None


def take_in(node: Any) -> None:
    """In the controller of xdist, which collects and runs nothing itself: takes a worker's notes."""
    for subject, seen in getattr(node, "workeroutput", {}).get("notes", {}).items():
        note(node.config, subject).update(seen)


def left_out(config: pytest.Config) -> Iterator[str]:
    """A line for each thing that a run of its whole folder should have seen."""
    whole = note(config, WHOLE)
    if "tui/snap" in whole:
        for path in sorted({*SNAPSHOTS.rglob("*.svg"), *SNAPSHOTS.rglob("*.txt")}):
            if str(path) not in note(config, PICTURES):
                yield f"a picture without a test: {path.relative_to(TESTS.parent)}"
    if "contract" in whole:
        for subject in [name for name in config.stash[_NOTES] if name.startswith(CALLS)]:
            for method in sorted(contract_methods() - note(config, subject)):
                yield f"no case of tests/contract called {method} of {subject.removeprefix(CALLS)}"
