"""A user's module passes both type checkers in strict mode, and each wrong use in it is an error in both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("checker", [("mypy", "--strict"), ("basedpyright",)], ids=["mypy", "basedpyright"])
@pytest.mark.parametrize("module", ["api.py", "drivers.py", "steps.py"])
def test_correct_uses_pass_and_wrong_ones_do_not(checker: tuple[str, ...], module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *checker, f"tests/typing/{module}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
