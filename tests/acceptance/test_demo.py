"""`ultijobs demo` as a newcomer runs it: a real PostgreSQL, real files, real processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

DEMO = [sys.executable, "-m", "ultijobs_cli", "demo", "--headless"]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of the demo's own; nothing may still run in it when the test is over.

    Not below pytest's folder, which every run of pytest closes to other accounts, the server's included.
    """
    with tempfile.TemporaryDirectory(prefix="ultijobs-demo-") as folder:
        yield Path(folder)
        assert running_in(Path(folder)) == []


def running_in(folder: Path) -> list[list[str]]:
    """The command lines of live processes that name the folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        words = process.info["cmdline"] or []
        address = (process.info["environ"] or {}).get("ULTIJOBS_DATABASE_URL", "")
        if process.info["status"] != psutil.STATUS_ZOMBIE and str(folder) in " ".join([*words, address]):
            found.append(words)
    return found


def demo(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, "--dir", str(home), *arguments], check=False, capture_output=True, text=True, cwd=home, timeout=110
    )


def test_the_demo_audits_what_is_installed_and_loses_nothing(home: Path) -> None:
    done = demo(home, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["invariants"] == {"lost": 0, "running_without_worker": 0}
    assert facts["jobs"]["done"] == sum(facts["jobs"].values()) > 20
    assert facts["files"] > 1000
    assert facts["steps"]["run"] > facts["jobs"]["done"] * 2
    assert facts["workers"] >= 2
    assert "audited" in done.stderr


def test_rounds_repeat_until_the_time_is_up_and_a_later_demo_finds_its_database(home: Path) -> None:
    first = json.loads(demo(home, "--for", "6s", "--json").stdout)
    again = json.loads(demo(home, "--for", "4s", "--json").stdout)
    for facts in (first, again):
        assert facts["invariants"] == {"lost": 0, "running_without_worker": 0}
        assert facts["rounds"] >= 1
        assert facts["jobs"]["done"] > 0


def test_incidents_stop_with_a_reason_and_lose_nothing(home: Path) -> None:
    done = demo(home, "--incidents", "--for", "25s", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["invariants"] == {"lost": 0, "running_without_worker": 0}
    assert facts["jobs"]["dead"] >= 18, "the dependency that times out, the poison documents, the killer of workers"
    assert facts["jobs"]["suspended"] in {1, 2}, "the sleeper, and the end of a round that the time cut short"


def test_an_interrupted_demo_stops_what_it_started(home: Path) -> None:
    process = subprocess.Popen(
        [*DEMO, "--dir", str(home), "--for", "100s", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    assert process.stdout is not None
    with process.stdout, process.stderr:
        for line in process.stderr:
            if line.startswith("round 1"):
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_second_demo_in_the_same_folder_is_refused(home: Path) -> None:
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = demo(home, "--json")
    assert refused.returncode == 2
    assert "X_INVARIANT" in refused.stderr
