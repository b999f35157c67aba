"""A command loads what it needs and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Shop


def loaded(tmp_path: Path, *words: str) -> set[str]:
    """The top-level packages that are loaded after a run of `words`."""
    script = (
        "import sys\nfrom ultijobs_cli.app import app\n"
        f"try:\n    app({list(words)!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=Shop(tmp_path, "memory:").env,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["explain", "X_JOB_UNKNOWN"], ["jobs", "ls", "--json"]])
def test_no_command_but_those_that_need_them_loads_the_heavy_packages(tmp_path: Path, words: list[str]) -> None:
    assert not loaded(tmp_path, *words) & {"textual", "asyncpg", "uvloop", "ultijobs_tui"}


def test_json_is_written_without_rich(tmp_path: Path) -> None:
    assert "rich" not in loaded(tmp_path, "explain", "--json-lines")


def test_a_missing_typer_is_named_in_a_sentence(tmp_path: Path) -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom ultijobs_cli.__main__ import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", script], env=Shop(tmp_path, None).env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 4
    assert "needs typer" in run.stderr
    assert "Traceback" not in run.stderr


def test_ctrl_c_while_the_command_line_is_imported_ends_it_without_a_traceback(tmp_path: Path) -> None:
    script = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "ultijobs_cli.root":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from ultijobs_cli.__main__ import main
main()
"""
    run = subprocess.run(
        [sys.executable, "-c", script], env=Shop(tmp_path, None).env, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (130, "")
