"""A pytest run of its own, as a user's project has it: with the plugin, in a folder, in a process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = "ultijobs.testing.plugin"
FROM_CHECKOUT = os.pathsep.join(str(ROOT / part) for part in (".", "cli", "tui"))


def installed() -> bool:
    """True where the package is installed, and pytest finds the plugin by itself."""
    return any(each.value == PLUGIN for each in entry_points(group="pytest11"))


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests of a folder; what is not installed is taken from the checkout."""
    given = [] if installed() else ["-p", PLUGIN]
    environ = {"PATH": os.environ["PATH"]} | ({} if installed() else {"PYTHONPATH": FROM_CHECKOUT})
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *given, str(folder)],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
