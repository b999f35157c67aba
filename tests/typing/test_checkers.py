"""A user's module passes both type checkers in strict mode, and each wrong use in it is an error in both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = sorted(str(path) for path in HERE.glob("*.py") if path != Path(__file__))


@pytest.mark.parametrize("checker", [("mypy", "--strict"), ("basedpyright",)], ids=["mypy", "basedpyright"])
def test_correct_uses_pass_and_wrong_ones_do_not(checker: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *checker, *MODULES],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert len(MODULES) == 3
    assert done.returncode == 0, done.stdout + done.stderr
